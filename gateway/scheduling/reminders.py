"""Keep reminders as jobs and enqueue each one once when it is due.

A turn says the reminder, like every other entry; this module knows no channel.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from gateway.scheduling.jobs import JobImpossible, JobKind, JobRunner
from gateway.storage.codec import new_entry
from gateway.storage.jobs import Job, NewJob
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, ReminderDue
from pipeline.runtime.ports import ReminderNote
from pipeline.runtime.scope import TurnScope
from pipeline.tools.schedule import shown_time

_log = logging.getLogger(__name__)

REMINDER = "reminder"
"""The kind of the jobs. A job's key is the reminder's id."""
LATE_S = 120.0
"""A reminder that is later than this, in seconds, says when it was due."""
_MAX_ATTEMPTS = 1_000
"""Its handler cannot end the process, so the deaths during its attempts have other causes."""


class ReminderScheduler:
    """Implements `Reminders`. `wake` is called with a thread that has work, `still_allowed` says whether the
    bot may still write to a reminder's author."""

    def __init__(
        self,
        *,
        jobs: JobRunner,
        store: Store,
        clock: Clock,
        wake: Callable[[str], None],
        still_allowed: Callable[[ReminderDue], Awaitable[bool]],
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._clock = clock
        self._wake = wake
        self._still_allowed = still_allowed
        jobs.handle(JobKind(name=REMINDER, run=self._hand_over, max_attempts=_MAX_ATTEMPTS))

    async def add(self, note: ReminderNote, scope: TurnScope, *, limit: int) -> bool:
        author = scope.author
        job = NewJob(
            kind=REMINDER,
            key=note.id,
            thread=scope.thread.encode(),
            owner=scope.chat_owner,
            due=note.due,
            body={
                "text": note.text,
                "author": author.id,
                "name": author.name,
                "private": scope.private,
                "offset_s": note.offset_s,
            },
        )
        return await self._jobs.add(job, limit=limit)

    async def of(self, scope: TurnScope) -> tuple[ReminderNote, ...]:
        return tuple(_note(job) for job in await self._store.jobs.of(REMINDER, scope.chat_owner))

    async def remove(self, note_id: str, scope: TurnScope) -> bool:
        return await self._store.jobs.remove(REMINDER, scope.chat_owner, note_id)

    async def _hand_over(self, job: Job) -> None:
        """Enqueue the reminder. The key of the entry prevents a second one after a crash."""
        try:
            due = self._item(job)
        except (InvalidInput, KeyError, TypeError, ValueError) as error:
            raise JobImpossible(f"the reminder cannot be read: {error}") from error
        if not await self._still_allowed(due):
            _log.info("a reminder is dropped: its author was shut out", extra={"thread_key": job.thread})
            return
        await self._store.accept(replace(new_entry(due), dedupe_key=f"reminder:{due.native_id}"))
        self._wake(job.thread)

    def _item(self, job: Job) -> ReminderDue:
        now, text = self._clock.now(), str(job.body["text"])
        if now - job.due > LATE_S:
            text += f" (it was due on {shown_time(job.due, _offset(job))})"
        # With the due time, because a short id may be reused later.
        identity = f"{job.key}_{round(job.due * 1000):x}"
        return ReminderDue(
            message_id=identity,
            native_id=identity,
            thread=ThreadKey.decode(job.thread),
            author=Author(id=str(job.body["author"]), name=str(job.body.get("name", ""))),
            received_at=now,
            private=bool(job.body["private"]),
            text=text,
        )


def _note(job: Job) -> ReminderNote:
    return ReminderNote(id=job.key, due=job.due, text=str(job.body.get("text", "")), offset_s=_offset(job))


def _offset(job: Job) -> int:
    return int(job.body.get("offset_s", 0))
