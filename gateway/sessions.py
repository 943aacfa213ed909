"""Sessions: the bounded conversations of a thread, and the model's view of one.

A session begins with a record of kind `session`. The history is read from the log once per live
thread and then kept up to date by the commits, so a turn's cost does not grow with it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence

from gateway.storage.ports import NewRecord, Record, RecordKind, Store
from pipeline.domain.chat import ChatMessage, message_from_plain
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.ids import new_id
from pipeline.domain.messages import Mode

MAX_HISTORY_RECORDS = 2_000
"""Records read back when a thread comes to life; older ones stay in the log, beyond any budget."""
MAX_TURNS = MAX_HISTORY_RECORDS // 2
MAX_ARRIVALS = 30
"""Arrival times kept for each author (seed 0: _inputTimestamps)."""
_MAX_AUTHORS = 200
"""People of a room whose arrivals are remembered."""
_SPOKEN_KINDS: tuple[RecordKind, ...] = ("user", "assistant", "summary")


class SessionState:
    """One live thread's session and its conversation so far."""

    def __init__(
        self,
        session_id: str,
        conversation: Conversation | None = None,
        *,
        stored: bool,
        mode: Mode = "normal",
    ) -> None:
        self.session_id = session_id
        self.stored = stored
        """Whether the session's own record is durable."""
        self.mode: Mode = mode
        conversation = conversation or Conversation()
        self._summary = conversation.summary
        self._turns = list(conversation.turns)
        self._arrivals: OrderedDict[str, deque[float]] = OrderedDict()

    @property
    def conversation(self) -> Conversation:
        """The session's conversation so far."""
        return Conversation(summary=self._summary, turns=tuple(self._turns))

    def extend(self, turn: PastTurn) -> None:
        """Take over what a commit made durable."""
        self._turns.append(turn)
        del self._turns[:-MAX_TURNS]

    def summarise(self, summary: Summary) -> None:
        """Let a durable summary stand for what it covers."""
        self._summary = summary
        self._turns = [turn for turn in self._turns if turn.id > summary.upto]

    def arrivals(self, author: str) -> tuple[float, ...]:
        """When the author's messages arrived, oldest first."""
        return tuple(self._arrivals.get(author, ()))

    def note_arrival(self, author: str, at: float) -> None:
        """Remember when a message of the author's arrived."""
        times = self._arrivals.setdefault(author, deque(maxlen=MAX_ARRIVALS))
        times.append(at)
        self._arrivals.move_to_end(author)
        while len(self._arrivals) > _MAX_AUTHORS:
            self._arrivals.popitem(last=False)

    def restart(self, session_id: str, *, mode: Mode = "normal") -> None:
        """Begin a new, empty session whose record is durable."""
        self.session_id = session_id
        self.stored = True
        self.mode = mode
        self._summary = None
        self._turns.clear()


async def load_session(store: Store, thread: str) -> SessionState:
    """The thread's current session, or a fresh one whose record is not yet written."""
    session_id = await store.current_session(thread)
    if session_id is None:
        return SessionState(new_id("ses"), stored=False)
    records = await store.read_log(
        thread, kinds=_SPOKEN_KINDS, session_id=session_id, limit=MAX_HISTORY_RECORDS
    )
    return SessionState(session_id, _conversation(records), stored=True)


async def conversation_before(store: Store, record: Record) -> Conversation:
    """The conversation of the record's session as it was before it."""
    records = await store.read_log(
        record.thread, kinds=_SPOKEN_KINDS, session_id=record.session_id, limit=MAX_HISTORY_RECORDS
    )
    return _conversation([earlier for earlier in records if earlier.id < record.id])


def session_record(session_id: str, message_id: str, at: float, *, text: str = "") -> NewRecord:
    """The record that begins a session; `text` is the line that shows it, empty for a thread's first."""
    body = {"text": text} if text else {}
    return NewRecord(kind="session", session_id=session_id, message_id=message_id, body=body, at=at)


def _conversation(records: Sequence[Record]) -> Conversation:
    """Only answered questions: a user message without an answer belongs to a turn still to come, or to
    one that failed, and the model must not answer it now."""
    asked: dict[str, str] = {}
    turns: list[PastTurn] = []
    summary: Summary | None = None
    for record in records:
        body = record.body
        if record.kind == "user":
            asked[record.message_id] = body["text"]
        elif record.kind == "summary":
            summary = Summary(text=body["text"], upto=body["upto"])
        elif (question := asked.pop(record.message_id, None)) is not None:
            exchange = [message_from_plain(plain) for plain in body.get("exchange", ())]
            turns.append(past_turn(record.id, question, exchange, body["text"], record.at))
    if summary is not None:
        turns = [turn for turn in turns if turn.id > summary.upto]
    return Conversation(summary=summary, turns=tuple(turns))


def past_turn(
    record_id: int, question: str, exchange: Sequence[ChatMessage], answer: str, at: float
) -> PastTurn:
    """An answered message, as the model is shown it."""
    return PastTurn(
        id=record_id,
        messages=(
            ChatMessage(role="user", content=question),
            *exchange,
            ChatMessage(role="assistant", content=answer),
        ),
        at=at,
    )
