"""Do what comes after the answer of a turn as a job: the extractors of the companion's graph.

The commit of the answer adds the job, so that a process that dies loses none, and a reply never waits. The
words are read from the log: a message that was taken back or deleted meanwhile is left out. The jobs of one
thread run in the order of its turns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gateway.agents.agent_book import AgentBook
from gateway.runtime.crash_labels import CrashLabels
from gateway.storage.jobs import Job, NewJob
from gateway.storage.log_records import UserRecord
from gateway.storage.ports import InboxEntry, Lease, Store
from gateway.turns.run_codec import newest_run
from gateway.turns.run_log import TOGETHER_S, StoreRunLog
from gateway.turns.session_ends import WhenIdle, about
from gateway.turns.sessions import PastSession, SessionState, logged_conversation, record_in
from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.domain.ids import ThreadKey, room_owner
from pipeline.domain.messages import Author, InboundMessage
from pipeline.memory.source_message import rests_on
from pipeline.runtime.ports import UserWords

MEMORY, FORGETTING = "memory", "forgetting"
"""The kinds of the jobs: what comes after an answer, and what goes with a turn that was taken out of its
conversation. A job's key is the message's id, its owner the thread, which orders them."""
_AGAIN_S = 1.0


def memory_job(session: SessionState, entry: InboxEntry, at: float) -> NewJob:
    """The job to add with the commit of the answer to `entry`."""
    return _job(MEMORY, entry.message_id, session, entry, at)


def forget_job(session: SessionState, entry: InboxEntry, root: str, at: float) -> NewJob:
    """The job to add with the commit that takes the turn of the message `root` out of the conversation."""
    return _job(FORGETTING, root, session, entry, at)


def _job(kind: str, key: str, session: SessionState, entry: InboxEntry, at: float) -> NewJob:
    body = about(entry, session) | {"session": session.session_id}
    return NewJob(kind=kind, key=key, thread=entry.thread, owner=entry.thread, due=at, body=body)


class AfterAnswers:
    """Does the jobs of all threads."""

    def __init__(
        self,
        *,
        store: Store,
        agents: AgentBook,
        clock: Clock,
        when_idle: WhenIdle,
        crash_labels: CrashLabels,
        person_of: Callable[[ThreadKey, str], str],
    ) -> None:
        """`person_of` gives the key of the person that a user of an account is."""
        self._person_of = person_of
        self._store = store
        self._agents = agents
        self._clock = clock
        self._when_idle = when_idle
        self._crash_labels = crash_labels

    async def run(self, job: Job) -> float | None:
        """Continue the run of the job's turn. Returns seconds if an earlier job of the thread is not done
        or a message came first, None when it is done. Raises StorageError, and KeyError for a job that cannot
        be read."""
        first, *_ = await self._store.jobs.of(MEMORY, job.owner) or (job,)
        if first.id != job.id:
            return _AGAIN_S
        return None if await self._when_idle(job.thread, partial(self._continue, job)) else 0.0

    async def forget(self, job: Job) -> float | None:
        """Forget what rests on the versions of the job's message that are out of its conversation. Returns
        and raises as `run`."""
        if await self._store.jobs.of(MEMORY, job.owner):
            return _AGAIN_S
        return None if await self._when_idle(job.thread, partial(self._forget, job)) else 0.0

    async def _forget(self, job: Job, lease: Lease, session: SessionState) -> None:
        known = await self._conversation(lease.thread, session, str(job.body["session"]))
        alive = {turn.source.message_id for turn in known.turns}
        said = await self._store.read_log(lease.thread, kinds=("user",), session_id=str(job.body["session"]))
        versions = {
            job.key,
            *(one.message_id for one in said if UserRecord.of(one).replaces == job.key),
        } - alive
        thread, author = ThreadKey.decode(job.thread), str(job.body["author"])
        owner = self._person_of(thread, author) if job.body["private"] else room_owner(thread)
        kept = await self._store.memories.everything(owner)
        held = [one.candidate for one in kept.held]
        ids = [
            item.id
            for item in (*kept.facts, *kept.profile.rules, *held)
            if any(rests_on(item, version) for version in versions)
        ]
        if ids:
            await self._store.memories.forget(owner, ids)

    async def _continue(self, job: Job, lease: Lease, session: SessionState) -> None:
        session_id, message_id = str(job.body["session"]), job.key
        known = await self._conversation(lease.thread, session, session_id)
        turn = next((one for one in known.turns if one.source.message_id == message_id), None)
        agent = self._agents.find(str(job.body["agent"]))
        if turn is None or agent is None or agent.pipeline.after is None:
            return
        steps = await self._store.read_log(lease.thread, kinds=("step",), message_id=message_id)
        past = PastSession(session_id, _before(known, turn))
        log = StoreRunLog(
            self._store, lease, partial(record_in, past, self._clock, message_id, "step"), self._crash_labels
        )
        log.together_s = TOGETHER_S
        message = _message(job, turn)
        words = UserWords(text=turn.source.text or turn.messages[0].content)
        self._crash_labels.reach("memory-before")
        outcome = await agent.pipeline.after.run(message, words, past, newest_run(steps), log)
        if outcome is not None and (rows := [*await log.unwritten(), *log.last_rows()]):
            await self._store.append(lease, rows)
        self._crash_labels.reach("memory-after")

    async def _conversation(self, thread: str, session: SessionState, session_id: str) -> Conversation:
        if session.session_id == session_id:
            return await session.read()
        return await logged_conversation(self._store, thread, session_id)


def _before(known: Conversation, turn: PastTurn) -> Conversation:
    """The conversation as it was when the turn ran."""
    return Conversation(summary=known.summary, turns=tuple(one for one in known.turns if one.id < turn.id))


def _message(job: Job, turn: PastTurn) -> InboundMessage:
    """The message that the turn answered, as far as the rest of its run needs it."""
    return InboundMessage(
        message_id=job.key,
        native_id=job.key,
        thread=ThreadKey.decode(job.thread),
        author=Author(id=str(job.body["author"])),
        received_at=turn.at,
        text=turn.source.text or turn.messages[0].content or "…",
        private=bool(job.body["private"]),
    )
