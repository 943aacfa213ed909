"""Write what a session leaves in the memory when it is over, as a job: an arc, and what it has held until
then.

The end of the session adds the job. It waits until nothing is left to do for the session's turns, and is done
once: repeated, it writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from gateway.agents.agent_book import AgentBook
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.jobs import Job
from gateway.storage.log_records import UserRecord
from gateway.storage.ports import Lease, Store
from gateway.turns.after_answer import MEMORY
from gateway.turns.session_ends import WhenIdle
from gateway.turns.sessions import PastSession, SessionState, whole_conversation
from pipeline.domain.conversation import Conversation
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage
from pipeline.intake.quotes import own_words
from pipeline.memory.sessions.ended import EndedSession, SessionTurn

_log = logging.getLogger(__name__)

_AGAIN_S = 1.0
_NOT_OVER_S = 60.0


class SessionMemories:
    """Does the jobs of all threads. Keeps nothing between two."""

    def __init__(
        self, *, store: Store, agents: AgentBook, when_idle: WhenIdle, crash_labels: CrashLabels
    ) -> None:
        self._store = store
        self._agents = agents
        self._when_idle = when_idle
        self._crash_labels = crash_labels

    async def run(self, job: Job) -> float | None:
        """Write what the job's session leaves. Returns seconds if the session is not over, its turns are not
        done or a message came first; None when it is done. Raises StorageError, and KeyError for a job that
        cannot be read."""
        left = await self._store.jobs.of(MEMORY, job.thread)
        if any(one.body.get("session") == job.key for one in left):
            return _AGAIN_S
        is_over = True

        async def work(lease: Lease, session: SessionState) -> None:
            nonlocal is_over
            is_over = session.session_id != job.key
            if is_over:
                await self._end(job, lease.thread)

        if not await self._when_idle(job.thread, work):
            return 0.0
        return None if is_over else _NOT_OVER_S

    async def _end(self, job: Job, thread: str) -> None:
        said = await self._store.read_log(thread, kinds=("user",), session_id=job.key, limit=1)
        name = UserRecord.of(said[0]).agent if said else ""
        agent = self._agents.find(name)
        if not said or agent is None or agent.pipeline.after is None:
            return
        known = await whole_conversation(self._store, thread, job.key)
        if not known.turns:
            return
        ended = _ended(job, known, await self._level(job.key, name))
        last = InboundMessage(
            message_id=f"{job.key}-end",
            native_id=job.key,
            thread=ThreadKey.decode(thread),
            author=Author(id=str(job.body["author"])),
            received_at=ended.ended_at,
            text="…",
            private=ended.private,
        )
        self._crash_labels.reach("session-memory-before")
        done = await agent.pipeline.after.end(last, ended, PastSession(job.key, known))
        self._crash_labels.reach("session-memory-after")
        _log.info(
            "a session is remembered", extra={"arc": done.arc, "reason": done.reason, **done.diagnostics}
        )

    async def _level(self, session_id: str, agent: str) -> int:
        """The highest level of the crisis gate in the session."""
        found = await self._store.states.read(f"session:{session_id}", f"{agent}/companion")
        values: Mapping[str, Any] = {} if found is None else found.body["values"]
        return int(values.get("progress", {}).get("crisis_level_max", 0))


def _ended(job: Job, known: Conversation, level: int) -> EndedSession:
    turns = tuple(
        SessionTurn(
            text=own_words(turn.source.text or turn.messages[0].content),
            answer="" if turn.foreign or turn.messages[-1].role != "assistant" else turn.messages[-1].content,
        )
        for turn in known.turns
    )
    return EndedSession(
        session_id=job.key,
        started_at=known.turns[0].at,
        ended_at=known.turns[-1].at,
        turns=turns,
        private=bool(job.body["private"]),
        crisis_level_max=level,
    )
