"""End a conversation after a time without messages, as a job: the thread's next message begins a new one.

Nothing is posted: a channel that shows a history shows a line. A new session keeps the mode and the chosen
agent of the one before it, so that no one is on the record again without having asked for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from gateway.agents.agent_book import AgentModels
from gateway.storage.jobs import Job, NewJob
from gateway.storage.ports import Lease, NewRecord, RecordKind, Store
from gateway.turns.sessions import SessionState, session_record, write_between_turns
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey, new_id
from pipeline.domain.timeline import TimelineEntry

SESSION_END = "session_end"
"""The kind of the jobs. A job's key is the session's id."""

WhenIdle = Callable[[str, Callable[[Lease, SessionState], Awaitable[None]]], Awaitable[bool]]
"""As `Worker.when_idle`."""

_SPOKEN: tuple[RecordKind, ...] = ("session", "user", "assistant", "error", "notice")
_TEXT = "New conversation{mode}, after {time} without a message"
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


class SessionEnds:
    """Ends the sessions of all threads. `models` gives an agent's limits; `on_ended` gets the line of a new
    session."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        models: Callable[[str], AgentModels],
        when_idle: WhenIdle,
        on_ended: Callable[[ThreadKey, TimelineEntry], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._models = models
        self._when_idle = when_idle
        self._on_ended = on_ended

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
            if session.session_id == job.key:
                left_s = await self._end(lease, session, self._models(str(job.body.get("agent", ""))))

        return (left_s or None) if await self._when_idle(job.thread, work) else 0.0

    async def _end(self, lease: Lease, session: SessionState, limits: AgentModels) -> float:
        """End the session, unless it was used meanwhile; the seconds that are left then, else 0."""
        idle_s, now = limits.session_idle_s, self._clock.now()
        if not idle_s:
            return 0.0  # the setting was removed since
        newest = await self._store.read_log(
            lease.thread, kinds=_SPOKEN, session_id=session.session_id, limit=1
        )
        # Off the record the log does not know the last message.
        left_s = max([session.used_at, *(record.at for record in newest)]) + idle_s - now
        if left_s > 0:
            return left_s
        mode, agent, session_id = session.mode, session.agent, new_id("ses")
        words = _TEXT.format(mode=", off the record" if mode == "otr" else "", time=_shown(idle_s))
        record = session_record(session_id, new_id("m"), now, text=words, mode=mode, agent=agent)
        restart = partial(session.restart, session_id, mode=mode, agent=agent)
        entry_id = await write_between_turns(self._store, lease, record, restart)
        self._show(lease.thread, record, entry_id)
        return 0.0

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
