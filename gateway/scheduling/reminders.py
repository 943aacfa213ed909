"""Keep reminders and other schedules as jobs, and enqueue an entry each time that one is due.

A turn says or answers it, like every other entry; this module knows no channel. A repeated schedule is one
job for all its life: its handler enqueues the last time that has come, under that time as the key, and waits
for the next. So a crash anywhere loses no time and doubles none.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from gateway.scheduling.jobs import JobImpossible, JobKind, JobRunner
from gateway.storage.codec import new_entry
from gateway.storage.jobs import Job, NewJob
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, ReminderDue, SessionCommand
from pipeline.runtime.ports import ReminderNote
from pipeline.runtime.scope import TurnScope
from pipeline.schedules.quiet_hours import QuietHours
from pipeline.schedules.repetition import Repetition
from pipeline.schedules.shown import shown_repetition
from pipeline.tools.schedule import shown_time

_log = logging.getLogger(__name__)

REMINDER = "reminder"
"""The kind of the jobs. A job's key is the reminder's id."""
LATE_S = 120.0
"""A reminder that is later than this, in seconds, says when it was due."""
_MAX_ATTEMPTS = 1_000
"""Its handler cannot end the process, so the deaths during its attempts have other causes."""
_NEVER: Final = 253_370_764_800.0
"""The due time of a paused job: the year 9999."""
_ASKED = "{text}\n\n(This is asked by a schedule: {when}.{late})"
_LATE = "it was due on {when}"

Due = ReminderDue | InboundMessage | SessionCommand
Workflows = Callable[[ThreadKey, str, bool], tuple[str, ...]]
"""(chat, user, whether it is private) -> the names of the workflows that the user may run there."""


class ReminderScheduler:
    """Implements `Reminders`. `wake` is called with a thread that has work, `still_allowed` says whether the
    bot may still write to a schedule's author. In `quiet` hours nothing that repeats is enqueued."""

    def __init__(
        self,
        *,
        jobs: JobRunner,
        store: Store,
        clock: Clock,
        wake: Callable[[str], None],
        still_allowed: Callable[[Due], Awaitable[bool]],
        quiet: QuietHours | None = None,
        workflows: Workflows | None = None,
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._clock = clock
        self._wake = wake
        self._still_allowed = still_allowed
        self._quiet = quiet
        self._workflows = workflows
        jobs.handle(JobKind(name=REMINDER, run=self._run, max_attempts=_MAX_ATTEMPTS))

    async def add(self, note: ReminderNote, scope: TurnScope, *, limit: int) -> bool:
        author = scope.author
        body: dict[str, Any] = {
            "text": note.text,
            "author": author.id,
            "name": author.name,
            "private": scope.private,
            "offset_s": note.offset_s,
        }
        if note.repetition is not None:
            body |= {"repeats": note.repetition.plain(), "does": note.does, "if_missed": note.if_missed}
            body |= {"workflow": note.workflow} if note.workflow else {}
        job = NewJob(
            kind=REMINDER,
            key=note.id,
            thread=scope.thread.encode(),
            owner=scope.chat_owner,
            due=note.due,
            body=body,
        )
        return await self._jobs.add(job, limit=limit)

    async def of(self, scope: TurnScope) -> tuple[ReminderNote, ...]:
        notes = [self._note(job) for job in await self._store.jobs.of(REMINDER, scope.chat_owner)]
        return tuple(sorted(notes, key=lambda note: (note.due, note.id)))

    def workflows(self, scope: TurnScope) -> tuple[str, ...]:
        find = self._workflows
        return () if find is None else find(scope.thread, scope.author.id, scope.private)

    async def remove(self, note_id: str, scope: TurnScope) -> bool:
        return await self._store.jobs.remove(REMINDER, scope.chat_owner, note_id)

    async def pause(self, note_id: str, scope: TurnScope, *, paused: bool) -> bool:
        jobs = await self._store.jobs.of(REMINDER, scope.chat_owner)
        job = next((one for one in jobs if one.key == note_id), None)
        if job is None:
            return False
        body = {**job.body, "paused": paused}
        due = _NEVER
        if paused and "due" not in body:
            body["due"] = job.due
        if not paused:
            began = float(body.pop("due", job.due))
            following = self._resumed(body, began)
            if following is None:
                return False
            due = following
        changed = await self._store.jobs.change(REMINDER, scope.chat_owner, note_id, due=due, body=body)
        self._jobs.note_added((NewJob(kind=REMINDER, key=note_id, due=due),))
        return changed

    def _resumed(self, body: Mapping[str, Any], due: float) -> float | None:
        """When a paused job is due again; None if its only time is over."""
        now, repetition = self._clock.now(), _repetition(body)
        if repetition is None:
            return due if due > now else None
        # What fell into the pause was not missed: it counts from now on.
        return repetition.next_after(now)

    async def _run(self, job: Job) -> float | None:
        """Enqueue what is due. Returns the seconds until the next time, None after the last one."""
        try:
            repetition = _repetition(job.body)
            if repetition is None:
                await self._hand_over(job, job.due, repetition)
                return None
            return await self._repeated(job, repetition)
        except (InvalidInput, KeyError, TypeError, ValueError) as error:
            raise JobImpossible(f"the reminder cannot be read: {error}") from error

    async def _repeated(self, job: Job, repetition: Repetition) -> float | None:
        now = self._clock.now()
        if job.body.get("paused"):
            return _NEVER - now
        due = repetition.last_until(now)
        # A job that was changed while it was paused begins again with its due time.
        if due is not None and due >= job.due:
            spoken = due if self._quiet is None else self._quiet.over_at(due, repetition.zone)
            if spoken > now:
                return spoken - now
            if now - spoken <= LATE_S or job.body.get("if_missed") != "skip":
                await self._hand_over(job, spoken, repetition, occurrence=due)
        following = repetition.next_after(now)
        return None if following is None else max(0.0, following - self._clock.now())

    async def _hand_over(
        self, job: Job, due: float, repetition: Repetition | None, occurrence: float | None = None
    ) -> None:
        """Enqueue the reminder. The key of the entry prevents a second one after a crash."""
        item = self._item(job, due, repetition, job.due if occurrence is None else occurrence)
        if not await self._still_allowed(item):
            _log.info("a reminder is dropped: its author was shut out", extra={"thread_key": job.thread})
            return
        await self._store.accept(replace(new_entry(item), dedupe_key=f"reminder:{item.native_id}"))
        self._wake(job.thread)

    def _item(self, job: Job, due: float, repetition: Repetition | None, occurrence: float) -> Due:
        now, text = self._clock.now(), str(job.body["text"])
        late = _LATE.format(when=shown_time(due, _offset(job))) if now - due > LATE_S else ""
        # With the due time, because a short id may be reused later.
        identity = f"{job.key}_{round(occurrence * 1000):x}"
        common: dict[str, Any] = {
            "message_id": identity,
            "native_id": identity,
            "thread": ThreadKey.decode(job.thread),
            "author": Author(id=str(job.body["author"]), name=str(job.body.get("name", ""))),
            "received_at": now,
            "private": bool(job.body["private"]),
        }
        if repetition is not None and job.body.get("does") == "run":
            # A command, so that the rights of the person count as they are when it is due.
            return SessionCommand(**common, name="run", argument=f"{job.body['workflow']} {text}")
        if repetition is not None and job.body.get("does") == "answer":
            said = f" The gateway did not run at the time: {late}." if late else ""
            words = _ASKED.format(text=text, when=shown_repetition(repetition), late=said)
            return InboundMessage(**common, text=words)
        return ReminderDue(**common, text=f"{text} ({late})" if late else text)

    def _note(self, job: Job) -> ReminderNote:
        body, repetition = job.body, _readable_repetition(job.body)
        paused, due = bool(body.get("paused")), float(body.get("due", job.due))
        if repetition is not None and not paused:
            due = repetition.next_after(self._clock.now()) or due
        return ReminderNote(
            id=job.key,
            due=due,
            text=str(body.get("text", "")),
            offset_s=_offset(job),
            repetition=repetition,
            does=_does(body),
            workflow=str(body.get("workflow", "")),
            if_missed="skip" if body.get("if_missed") == "skip" else "once",
            paused=paused,
        )


def _repetition(body: Mapping[str, Any]) -> Repetition | None:
    """Raises as `Repetition.from_plain`."""
    plain = body.get("repeats")
    return None if plain is None else Repetition.from_plain(plain)


def _readable_repetition(body: Mapping[str, Any]) -> Repetition | None:
    try:
        return _repetition(body)
    except (InvalidInput, KeyError, TypeError, ValueError):
        return None


def _does(body: Mapping[str, Any]) -> Literal["say", "answer", "run"]:
    match body.get("does"):
        case "answer":
            return "answer"
        case "run":
            return "run"
        case _:
            return "say"


def _offset(job: Job) -> int:
    return int(job.body.get("offset_s", 0))
