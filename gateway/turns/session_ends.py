"""End a conversation after a time without messages, or when it has become long, as a job: the thread's next
message begins a new one.

Nothing is posted: a channel that shows a history shows a line. A new session keeps the mode and the chosen
agent of the one before it, so that no one is on the record again without having asked for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from gateway.agents.agent_book import AgentModels
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.jobs import Job, NewJob
from gateway.storage.ports import InboxEntry, Lease, NewRecord, RecordKind, Store
from gateway.turns.sessions import SessionState, session_record, write_between_turns
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey, new_id
from pipeline.domain.timeline import TimelineEntry

SESSION_END, ROTATION, SESSION_MEMORY = "session_end", "rotation", "session_memory"
"""The kinds of the jobs: the end after a time, the end of a long session, and what is remembered of a session
that is over. A job's key is the session's id."""
ROTATION_TURNS = 120
"""A session with so many turns, 240 messages, ends after the last one."""

WhenIdle = Callable[[str, Callable[[Lease, SessionState], Awaitable[None]]], Awaitable[bool]]
"""As `Worker.when_idle`."""

_SPOKEN: tuple[RecordKind, ...] = ("session", "user", "assistant", "error", "notice")
_TEXT = "New conversation{mode}, after {time} without a message"
_LONG_TEXT = "New conversation{mode}: the one before has become long"
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def about(entry: InboxEntry, session: SessionState) -> dict[str, Any]:
    """Whose session it is, as the body of a job."""
    author, private = entry.item.author.id, entry.item.private
    return {"agent": session.answered_by, "author": author, "private": private}


def rotation_job(session: SessionState, entry: InboxEntry, at: float) -> NewJob:
    """The job that ends a long session."""
    return NewJob(
        kind=ROTATION, key=session.session_id, thread=entry.thread, due=at, body=about(entry, session)
    )


def session_memory_job(session_id: str, thread: str, body: Mapping[str, Any], at: float) -> NewJob:
    """The job that remembers what a session was about; `body` as from `about`."""
    return NewJob(kind=SESSION_MEMORY, key=session_id, thread=thread, due=at, body=body)


class SessionEnds:
    """Ends the sessions of all threads. `models` gives an agent's limits; `on_ended` gets the line of a new
    session; `add` adds a job, and is None if no agent has a memory."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        models: Callable[[str], AgentModels],
        when_idle: WhenIdle,
        on_ended: Callable[[ThreadKey, TimelineEntry], None],
        add: Callable[[NewJob], Awaitable[object]] | None = None,
        crash_labels: CrashLabels | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._models = models
        self._when_idle = when_idle
        self._on_ended = on_ended
        self._add = add
        self._crash_labels = crash_labels or CrashLabels()

    def job(self, session: SessionState, thread: str, at: float) -> NewJob | None:
        """The job to add with a turn's commit; None if the session has one or does not end by itself."""
        if session.end_is_due:
            return None
        idle_s = self._models(session.answered_by).session_idle_s
        if not idle_s:
            return None
        body = {"agent": session.answered_by}
        return NewJob(kind=SESSION_END, key=session.session_id, thread=thread, due=at + idle_s, body=body)

    async def run(self, job: Job) -> float | None:
        """End the job's session. Returns the seconds after which to try again, if a message came meanwhile;
        None when the session is over. Raises StorageError."""
        left_s = 0.0

        async def work(lease: Lease, session: SessionState) -> None:
            nonlocal left_s
            if session.session_id != job.key:
                return
            idle_s = self._models(str(job.body.get("agent", ""))).session_idle_s
            left_s = await self._left(lease, session, idle_s)
            if idle_s and left_s <= 0:
                left_s = 0.0
                await self._end(job, lease, session, _TEXT, _shown(idle_s))

        return (left_s or None) if await self._when_idle(job.thread, work) else 0.0

    async def rotate(self, job: Job) -> float | None:
        """End the job's session, which has become long. Returns and raises as `run`."""

        async def work(lease: Lease, session: SessionState) -> None:
            if session.session_id == job.key:
                await self._end(job, lease, session, _LONG_TEXT, "")

        return None if await self._when_idle(job.thread, work) else 0.0

    async def _left(self, lease: Lease, session: SessionState, idle_s: float) -> float:
        """The seconds until the session has been idle so long; 0 if the setting was removed since."""
        if not idle_s:
            return 0.0
        newest = await self._store.read_log(
            lease.thread, kinds=_SPOKEN, session_id=session.session_id, limit=1
        )
        # Off the record the log does not know the last message.
        used_at = max([session.used_at, *(record.at for record in newest)])
        return used_at + idle_s - self._clock.now()

    async def _end(self, job: Job, lease: Lease, session: SessionState, text: str, time: str) -> None:
        """Begin a new session. First the job for the memory of the old one is durable, which waits for the
        end."""
        mode, agent, session_id, now = session.mode, session.agent, new_id("ses"), self._clock.now()
        self._crash_labels.reach("session-end-before")
        if self._add is not None and mode != "otr" and "author" in job.body:
            await self._add(session_memory_job(session.session_id, lease.thread, job.body, now))
        words = text.format(mode=", off the record" if mode == "otr" else "", time=time)
        record = session_record(session_id, new_id("m"), now, text=words, mode=mode, agent=agent)
        restart = partial(session.restart, session_id, mode=mode, agent=agent)
        entry_id = await write_between_turns(self._store, lease, record, restart)
        self._crash_labels.reach("session-end-after")
        self._show(lease.thread, record, entry_id)

    def _show(self, thread: str, record: NewRecord, entry_id: int) -> None:
        line = TimelineEntry(
            entry_id=entry_id,
            message_id=record.message_id,
            role="session",
            text=record.body["text"],
            at=record.at,
            code=record.body.get("mode", ""),
        )
        self._on_ended(ThreadKey.decode(thread), line)


def _shown(seconds: float) -> str:
    """A time in its largest unit that divides it."""
    whole = max(1, round(seconds))
    size, unit = next((size, unit) for size, unit in _UNITS if whole % size == 0)
    count = whole // size
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
