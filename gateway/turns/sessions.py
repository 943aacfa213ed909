"""Load and update sessions: the bounded conversations of a thread, as the model sees them.

A session begins with a record of kind `session`. The history is read from the log when a turn first needs
it, once per live thread, and then updated by the commits, so a turn's cost does not grow with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gateway.storage.log_records import (
    ModelRecord,
    SessionRecord,
    TitleRecord,
    UserRecord,
    content_of,
    session_body,
    summary_body,
)
from gateway.storage.ports import Lease, NewRecord, Record, RecordKind, Store
from gateway.turns.past_turns import conversation_of
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.ids import new_id
from pipeline.domain.messages import HeartbeatDue, InboundMessage, Mode

MAX_HISTORY_RECORDS = 2_000
"""Records read when a thread becomes active; older ones stay in the log, beyond any token budget."""
MAX_TURNS = MAX_HISTORY_RECORDS // 2
MAX_ARRIVALS = 30
"""Arrival times kept for each author."""
_MAX_AUTHORS = 200
"""Authors of a room whose arrival times are kept."""
_SPOKEN_KINDS: tuple[RecordKind, ...] = ("user", "assistant", "error", "notice", "summary")


class SessionState:
    """One live thread's session and its conversation so far."""

    def __init__(
        self,
        session_id: str,
        conversation: Conversation | None = None,
        *,
        stored: bool,
        mode: Mode = "normal",
        agent: str = "",
        log: Callable[[], Awaitable[Conversation]] | None = None,
    ) -> None:
        """`log` reads the conversation from the log; without it, `conversation` is all of it."""
        self.session_id = session_id
        self.stored = stored
        """Whether the session's record is durable, or is written with the next record of the turn."""
        self.mode: Mode = mode
        self.agent = agent
        """The agent that a person chose for it; empty where none was chosen."""
        self.model = ""
        """The model that a person chose for it; empty for the agent's own."""
        self.answered_by = ""
        """The agent of its last turn in this process; empty for the default one."""
        self.title = ""
        """The title, a few words; empty until one was made."""
        self.used_at = 0.0
        """When its last turn of this process ended, as Unix time; 0 without one."""
        self.end_is_due = False
        """Whether this process has added the job that ends it."""
        self.summary_is_due = False
        """Whether this process has added the job that summarises it, and the job is not done."""
        conversation = conversation or Conversation()
        self._summary = conversation.summary
        self._turns = list(conversation.turns)
        self._conversation: Conversation | None = None
        """A cache of turns and summary; None after either changed."""
        self._log = log
        """None once the whole conversation is known."""
        self._arrivals = BoundedDict[str, deque[float]](_MAX_AUTHORS)

    @property
    def conversation(self) -> Conversation:
        """The session's conversation so far; before `read`, the turns of this process alone."""
        if self._conversation is None:
            self._conversation = Conversation(summary=self._summary, turns=tuple(self._turns))
        return self._conversation

    @property
    def is_whole(self) -> bool:
        """Whether the whole conversation is known, and not only the turns of this process."""
        return self._log is None

    async def read(self) -> Conversation:
        """The whole conversation so far, read from the log unless that was done. Raises StorageError."""
        if self._log is None:
            return self.conversation
        session_id, found = self.session_id, await self._log()
        if self.session_id != session_id:
            return self.conversation
        known = {turn.id for turn in found.turns}
        # Turns that ended meanwhile are in the log too, except those off the record.
        self._turns = [*found.turns, *(turn for turn in self._turns if turn.id not in known)][-MAX_TURNS:]
        self._summary = found.summary
        self._all_is_known()
        return self.conversation

    def _all_is_known(self) -> None:
        self._conversation = None
        self._log = None

    def extend(self, turn: PastTurn, *, answered: bool = True) -> None:
        """Add a turn that a commit made durable. One that repeats an earlier turn replaces it, or is left out
        if it has no answer."""
        if turn.source.replaces:
            if not answered:
                return
            self.remove(turn.source.root)
        self._turns.append(turn)
        known = self._conversation
        self._conversation = None if known is None or len(self._turns) > MAX_TURNS else known.extended(turn)
        del self._turns[:-MAX_TURNS]

    def remove(self, root: str) -> None:
        """Take the turn of the message `root` out, as a commit did durably."""
        self._conversation = None
        self._turns = [turn for turn in self._turns if turn.source.root != root]

    def summarise(self, summary: Summary) -> None:
        """Replace the turns that a durable summary covers by the summary."""
        self._conversation = None
        self._summary = summary
        self._turns = [turn for turn in self._turns if turn.id > summary.upto]

    def arrivals(self, author: str) -> tuple[float, ...]:
        """When the author's messages arrived, as Unix times, oldest first."""
        return tuple(self._arrivals.get(author, ()))

    def note_arrival(self, author: str, at: float) -> None:
        """Record when a message of the author arrived, as Unix time."""
        self._arrivals.get_or_add(author, lambda: deque(maxlen=MAX_ARRIVALS)).append(at)

    def forget(self) -> None:
        """Begin as in a new thread: everything in the thread was erased."""
        self.restart(new_id("ses"))
        self.stored = False
        self.answered_by = ""
        self._arrivals.clear()

    def read_again(self, log: Callable[[], Awaitable[Conversation]]) -> None:
        """Read the conversation from the log when it is needed next: a part of it was erased there."""
        self._summary, self._conversation, self._log = None, None, log
        self._turns.clear()
        self.title = ""

    def restart(self, session_id: str, *, mode: Mode = "normal", agent: str = "") -> None:
        """Begin a new, empty session whose record is durable."""
        self.session_id = session_id
        self.stored = True
        self.mode = mode
        self.agent = agent
        self.model = ""
        self.title = ""
        self.end_is_due = self.summary_is_due = False
        self._summary = None
        self._turns.clear()
        self._all_is_known()


class SessionView:
    """A session as a check needs it that runs beside the session's turn. Writes nothing."""

    def __init__(self, session: SessionState, message: InboundMessage | HeartbeatDue) -> None:
        self._session = session
        self._author = message.author.id

    @property
    def session_id(self) -> str:
        return self._session.session_id

    @property
    def mode(self) -> Mode:
        return self._session.mode

    @property
    def arrivals(self) -> tuple[float, ...]:
        return self._session.arrivals(self._author)

    async def conversation(self) -> Conversation:
        return await self._session.read()

    async def record_summary(self, _summary: Summary) -> bool:
        return False


class PastSession:
    """A session as it was before one of its turns, for work after that turn."""

    def __init__(self, session_id: str, before: Conversation) -> None:
        self.session_id = session_id
        self.mode: Mode = "normal"
        self.arrivals: tuple[float, ...] = ()
        self._before = before

    async def conversation(self) -> Conversation:
        return self._before

    async def record_summary(self, _summary: Summary) -> bool:
        return False


async def load_session(store: Store, thread: str) -> SessionState:
    """The thread's current session, with its conversation unread, or a fresh one whose record is not yet
    written."""
    session_id = await store.current_session(thread)
    if session_id is None:
        return SessionState(new_id("ses"), stored=False)
    session = SessionState(
        session_id, stored=True, log=partial(logged_conversation, store, thread, session_id)
    )
    for record in await store.read_log(thread, kinds=("session", "title", "model"), session_id=session_id):
        match content_of(record):
            case SessionRecord(mode=mode, agent=agent):
                session.mode, session.agent = mode, agent
            case TitleRecord(text=title):
                session.title = title
            case ModelRecord(name=model):
                session.model = model
    return session


def read_again(store: Store, thread: str, session: SessionState) -> None:
    """Have the session of a thread read its conversation from the log again."""
    session.read_again(partial(logged_conversation, store, thread, session.session_id))


async def logged_conversation(store: Store, thread: str, session_id: str) -> Conversation:
    """The conversation of a session of the thread, also of one that is over. Raises StorageError."""
    return conversation_of(await _spoken(store, thread, session_id))


async def whole_conversation(store: Store, thread: str, session_id: str) -> Conversation:
    """As `logged_conversation`, without its summary: the newest turns of the whole session."""
    kinds: tuple[RecordKind, ...] = ("user", "assistant", "error", "notice")
    records = await store.read_log(thread, kinds=kinds, session_id=session_id, limit=MAX_HISTORY_RECORDS)
    return conversation_of(records)


async def conversation_before(store: Store, record: Record) -> Conversation:
    """The conversation of the record's session as it was before the record."""
    records = await _spoken(store, record.thread, record.session_id)
    before = conversation_of([earlier for earlier in records if earlier.id < record.id])
    replaced = UserRecord.of(record).replaces
    return before.without(replaced) if replaced else before


async def write_summary(
    store: Store, lease: Lease, session: SessionState, summary: Summary, *, at: float, message_id: str = ""
) -> bool:
    """Replace the session's beginning by `summary`, durably unless it is off the record. False, with no
    change, if the thread has a new conversation by now or a summary that covers more."""
    known = await session.read()
    if known.summary is not None and known.summary.upto >= summary.upto:
        return False
    if not any(turn.id == summary.upto for turn in known.turns):
        return False
    sources = [turn.foreign for turn in known.turns if turn.id <= summary.upto]
    if known.summary is not None:
        sources.append(known.summary.foreign)
    summary = replace(summary, foreign=next(filter(None, sources), ""))
    if session.mode == "otr":
        session.summarise(summary)
    else:
        record = NewRecord(
            kind="summary",
            session_id=session.session_id,
            message_id=message_id,
            body=summary_body(summary),
            at=at,
        )
        await write_between_turns(store, lease, record, partial(session.summarise, summary))
    return True


async def write_between_turns(
    store: Store, lease: Lease, record: NewRecord, apply: Callable[[], None]
) -> int:
    """Write the record, then `apply` it to the session in memory; returns the record's id.

    Cancelled, because a message came, it applies the record too: the write continues, and must not be made a
    second time. Raises FenceLost and StorageError.
    """
    try:
        (record_id,) = await asyncio.shield(store.append(lease, [record]))
    except asyncio.CancelledError:
        apply()
        raise
    apply()
    return record_id


def session_record(
    session_id: str, message_id: str, at: float, *, text: str = "", mode: Mode = "normal", agent: str = ""
) -> NewRecord:
    """The record that begins a session; `text` is its visible line, empty for a thread's first session."""
    body = session_body(text, mode, agent)
    return NewRecord(kind="session", session_id=session_id, message_id=message_id, body=body, at=at)


def record_in(
    session: SessionState | PastSession,
    clock: Clock,
    message_id: str,
    kind: RecordKind,
    body: Mapping[str, Any],
) -> NewRecord:
    """A new record of the message in `session`, made now."""
    own, at = session.session_id, clock.now()
    return NewRecord(kind=kind, session_id=own, message_id=message_id, body=body, at=at)


async def _spoken(store: Store, thread: str, session_id: str) -> tuple[Record, ...]:
    """The newest records of the session's messages, and the summary of what came before them."""
    records = await store.read_log(
        thread, kinds=_SPOKEN_KINDS, session_id=session_id, limit=MAX_HISTORY_RECORDS
    )
    if len(records) < MAX_HISTORY_RECORDS or any(record.kind == "summary" for record in records):
        return records
    older = await store.read_log(thread, kinds=("summary",), session_id=session_id, limit=1)
    return (*older, *records)
