"""Load and update sessions: the bounded conversations of a thread, as the model sees them.

A session begins with a record of kind `session`. The history is read from the log when a turn first needs
it, once per live thread, and then updated by the commits, so a turn's cost does not grow with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from gateway.storage.log_records import (
    AssistantRecord,
    ErrorRecord,
    SessionRecord,
    SummaryRecord,
    TitleRecord,
    UserRecord,
    content_of,
    session_body,
    summary_body,
)
from gateway.storage.ports import Lease, NewRecord, Record, RecordKind, Store
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.ids import new_id
from pipeline.domain.messages import InboundMessage, Mode
from pipeline.domain.rooms import said_by
from pipeline.history.attached_files import asked_message
from pipeline.history.stale_results import with_brief
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.before_message import NOT_CHECKED
from pipeline.runtime.ports import UserWords

MAX_HISTORY_RECORDS = 2_000
"""Records read when a thread becomes active; older ones stay in the log, beyond any token budget."""
MAX_TURNS = MAX_HISTORY_RECORDS // 2
MAX_ARRIVALS = 30
"""Arrival times kept for each author."""
_MAX_AUTHORS = 200
"""Authors of a room whose arrival times are kept."""
UNSHOWN_FAILURES = ("gave_up", "unreadable", "quota", NOT_CHECKED)
"""Codes of failures whose message is hidden from later turns: its words may have crashed the process or have
never reached the agent."""
_SPOKEN_KINDS: tuple[RecordKind, ...] = ("user", "assistant", "error", "summary")
_ENDED = {
    "stopped": "[Stopped by the user before the answer was complete.]",
    "timeout": "[Given up before the answer was complete: it took too long.]",
    "budget": "[Not answered: the budget was used up.]",
}
_FAILED = "[Not answered: an error ended the turn.]"


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
        self.answered_by = ""
        """The agent of its last turn in this process; empty for the default one."""
        self.title = ""
        """The title, a few words; empty until one was made."""
        self.used_at = 0.0
        """When its last turn of this process ended, as Unix time; 0 without one."""
        self.end_is_due = False
        """Whether this process has added the job that ends it."""
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

    def extend(self, turn: PastTurn) -> None:
        """Add a turn that a commit made durable."""
        self._conversation = None
        self._turns.append(turn)
        del self._turns[:-MAX_TURNS]

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

    def restart(self, session_id: str, *, mode: Mode = "normal", agent: str = "") -> None:
        """Begin a new, empty session whose record is durable."""
        self.session_id = session_id
        self.stored = True
        self.mode = mode
        self.agent = agent
        self.title = ""
        self.end_is_due = False
        self._summary = None
        self._turns.clear()
        self._all_is_known()


class SessionView:
    """A session as a check needs it that runs beside the session's turn. Writes nothing."""

    def __init__(self, session: SessionState, message: InboundMessage) -> None:
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


async def load_session(store: Store, thread: str) -> SessionState:
    """The thread's current session, with its conversation unread, or a fresh one whose record is not yet
    written."""
    session_id = await store.current_session(thread)
    if session_id is None:
        return SessionState(new_id("ses"), stored=False)
    session = SessionState(session_id, stored=True, log=partial(_logged, store, thread, session_id))
    for record in await store.read_log(thread, kinds=("session", "title"), session_id=session_id):
        match content_of(record):
            case SessionRecord(mode=mode, agent=agent):
                session.mode, session.agent = mode, agent
            case TitleRecord(text=title):
                session.title = title
    return session


async def _logged(store: Store, thread: str, session_id: str) -> Conversation:
    return _conversation(await _spoken(store, thread, session_id))


async def conversation_before(store: Store, record: Record) -> Conversation:
    """The conversation of the record's session as it was before the record."""
    records = await _spoken(store, record.thread, record.session_id)
    return _conversation([earlier for earlier in records if earlier.id < record.id])


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


async def _spoken(store: Store, thread: str, session_id: str) -> tuple[Record, ...]:
    """The newest records of the session's messages, and the summary of what came before them."""
    records = await store.read_log(
        thread, kinds=_SPOKEN_KINDS, session_id=session_id, limit=MAX_HISTORY_RECORDS
    )
    if len(records) < MAX_HISTORY_RECORDS or any(record.kind == "summary" for record in records):
        return records
    older = await store.read_log(thread, kinds=("summary",), session_id=session_id, limit=1)
    return (*older, *records)


def _conversation(records: Sequence[Record]) -> Conversation:
    """The conversation from finished turns only: a user message without an answer or error after it belongs
    to a turn that has yet to run, and the model must not answer it now."""
    asked: dict[str, ChatMessage] = {}
    partial: dict[str, tuple[int, str]] = {}
    turns: list[PastTurn] = []
    summary: Summary | None = None
    for record in records:
        content = content_of(record)
        if isinstance(content, UserRecord):
            asked[record.message_id] = message_on_record(content.words)
        elif isinstance(content, SummaryRecord):
            summary = content.summary
        elif isinstance(content, AssistantRecord) and content.partial:
            # The error that ended the turn follows it.
            partial[record.message_id] = record.id, content.text
        elif (question := asked.pop(record.message_id, None)) is not None:
            if isinstance(content, AssistantRecord):
                turns.append(past_turn(record.id, question, content.exchange, content.text, record.at))
            elif isinstance(content, ErrorRecord) and content.code not in UNSHOWN_FAILURES:
                number, said = partial.pop(record.message_id, (record.id, ""))
                exchange, code = content.exchange, content.code
                turns.append(unanswered_turn(number, question, exchange, said, code, record.at))
    if summary is not None:
        turns = [turn for turn in turns if turn.id > summary.upto]
    return Conversation(summary=summary, turns=tuple(turns))


def message_on_record(words: UserWords) -> ChatMessage:
    """A user's words and files as the model reads them: in a room with the author's name first."""
    said = clean_text(said_by(words.text, words.by))  # as it was sent when it was new
    if not words.files:
        return ChatMessage(role="user", content=said)
    return asked_message(said, words.files, words.attached)


def past_turn(
    record_id: int, question: ChatMessage, exchange: Sequence[ChatMessage], answer: str, at: float
) -> PastTurn:
    """An answered message, as the model sees it."""
    turn = PastTurn(
        id=record_id,
        messages=(
            question,
            *exchange,
            ChatMessage(role="assistant", content=_last_words(exchange, answer)),
        ),
        at=at,
    )
    return with_brief(turn)


def unanswered_turn(
    record_id: int, question: ChatMessage, exchange: Sequence[ChatMessage], partial: str, code: str, at: float
) -> PastTurn:
    """A message whose turn ended with the error `code`, as the model sees it: the partial answer and how the
    turn ended. `record_id` is that of the partial answer, or of the error if there is none."""
    shown = _shown_words(exchange)
    rest = partial[partial.index(shown) + len(shown) :].strip() if shown in partial else partial.strip()
    mark = _ENDED.get(code, _FAILED)
    turn = PastTurn(
        id=record_id,
        messages=(
            question,
            *exchange,
            ChatMessage(role="assistant", content=f"{rest}\n\n{mark}" if rest else mark),
        ),
        at=at,
    )
    return with_brief(turn)


def _last_words(exchange: Sequence[ChatMessage], answer: str) -> str:
    """The answer without the words that the exchange already holds, so that the model sees nothing twice:
    an answer is everything that was shown. The whole answer if nothing else is left."""
    shown = _shown_words(exchange)
    # A line about what was left out of the message may precede both.
    _, _, last = answer.partition(shown + "\n\n") if shown else ("", "", answer)
    return last or answer


def _shown_words(exchange: Sequence[ChatMessage]) -> str:
    """The assistant's words in the exchange, as they were shown."""
    return "\n\n".join(
        message.content for message in exchange if message.role == "assistant" and message.content
    )
