"""Sessions: the bounded conversations of a thread, and the model's view of one.

A session begins with a record of kind `session`. The history is read from the log once per live
thread and then kept up to date by the commits, so a turn's cost does not grow with it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Sequence

from gateway.storage.ports import Lease, NewRecord, Record, RecordKind, Store
from pipeline.domain.chat import ChatMessage, message_from_plain
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.ids import new_id
from pipeline.domain.messages import Mode
from pipeline.history.stale import with_brief
from pipeline.intake.cleaning import clean_text

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
        self.title = ""
        """What it is about, in a few words; empty until somebody found them."""
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
        self.title = ""
        self._summary = None
        self._turns.clear()


async def load_session(store: Store, thread: str) -> SessionState:
    """The thread's current session, or a fresh one whose record is not yet written."""
    session_id = await store.current_session(thread)
    if session_id is None:
        return SessionState(new_id("ses"), stored=False)
    conversation = _conversation(await _spoken(store, thread, session_id))
    about = {
        record.kind: record.body
        for record in await store.read_log(thread, kinds=("session", "title"), session_id=session_id)
    }
    mode: Mode = "otr" if about.get("session", {}).get("mode") == "otr" else "normal"
    session = SessionState(session_id, conversation, stored=True, mode=mode)
    session.title = str(about.get("title", {}).get("text", ""))
    return session


async def conversation_before(store: Store, record: Record) -> Conversation:
    """The conversation of the record's session as it was before it."""
    records = await _spoken(store, record.thread, record.session_id)
    return _conversation([earlier for earlier in records if earlier.id < record.id])


async def write_summary(
    store: Store, lease: Lease, session: SessionState, summary: Summary, *, at: float, message_id: str = ""
) -> bool:
    """Let `summary` stand for the session's beginning, durably unless it is off the record. False, and
    nothing changes, where the conversation is another one by now or is summed up further already."""
    known = session.conversation
    if known.summary is not None and known.summary.upto >= summary.upto:
        return False
    if not any(turn.id == summary.upto for turn in known.turns):
        return False
    if session.mode != "otr":
        body = {"text": summary.text, "upto": summary.upto}
        record = NewRecord(
            kind="summary", session_id=session.session_id, message_id=message_id, body=body, at=at
        )
        try:
            await asyncio.shield(store.append(lease, [record]))
        except asyncio.CancelledError:
            session.summarise(summary)  # a write that has begun goes on: nobody is to make a second one
            raise
    session.summarise(summary)
    return True


def session_record(
    session_id: str, message_id: str, at: float, *, text: str = "", mode: Mode = "normal"
) -> NewRecord:
    """The record that begins a session; `text` is the line that shows it, empty for a thread's first."""
    body = {"text": text} if text else {}
    if mode != "normal":
        body["mode"] = mode
    return NewRecord(kind="session", session_id=session_id, message_id=message_id, body=body, at=at)


async def _spoken(store: Store, thread: str, session_id: str) -> tuple[Record, ...]:
    """The newest records of what was said, and the summary of what came before them."""
    records = await store.read_log(
        thread, kinds=_SPOKEN_KINDS, session_id=session_id, limit=MAX_HISTORY_RECORDS
    )
    if len(records) < MAX_HISTORY_RECORDS or any(record.kind == "summary" for record in records):
        return records
    older = await store.read_log(thread, kinds=("summary",), session_id=session_id, limit=1)
    return (*older, *records)


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
    turn = PastTurn(
        id=record_id,
        messages=(
            ChatMessage(role="user", content=clean_text(question)),  # as it was sent when it was new
            *exchange,
            ChatMessage(role="assistant", content=_last_words(exchange, answer)),
        ),
        at=at,
    )
    return with_brief(turn)


def _last_words(exchange: Sequence[ChatMessage], answer: str) -> str:
    """The answer without what stands in the exchange already: an answer is everything that was shown, and
    the model is to see none of it twice. The whole of it where nothing else is left."""
    shown = "\n\n".join(
        message.content for message in exchange if message.role == "assistant" and message.content
    )
    last = answer.removeprefix(shown + "\n\n") if shown else answer
    return last or answer
