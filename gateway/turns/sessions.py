"""Sessions: the bounded conversations of a thread, and the model's view of one.

A session begins with a record of kind `session`. The history is read from the log once per live
thread and then kept up to date by the commits, so a turn's cost does not grow with it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.storage.ports import Lease, NewRecord, Record, RecordKind, Store
from pipeline.domain.chat import ChatMessage, message_from_plain
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.ids import new_id
from pipeline.domain.messages import Mode
from pipeline.domain.rooms import said_by
from pipeline.history.stale_results import with_brief
from pipeline.intake.cleaning import clean_text

MAX_HISTORY_RECORDS = 2_000
"""Records read back when a thread comes to life; older ones stay in the log, beyond any budget."""
MAX_TURNS = MAX_HISTORY_RECORDS // 2
MAX_ARRIVALS = 30
"""Arrival times kept for each author (seed 0: _inputTimestamps)."""
_MAX_AUTHORS = 200
"""People of a room whose arrivals are remembered."""
UNSHOWN_FAILURES = ("gave_up", "unreadable")
"""Codes of failures whose message no later turn is shown: its words may be what ended the process."""
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
        self._conversation: Conversation | None = None
        """Both together, as long as they stay as they are."""
        self._arrivals: OrderedDict[str, deque[float]] = OrderedDict()

    @property
    def conversation(self) -> Conversation:
        """The session's conversation so far."""
        if self._conversation is None:
            self._conversation = Conversation(summary=self._summary, turns=tuple(self._turns))
        return self._conversation

    def extend(self, turn: PastTurn) -> None:
        """Take over what a commit made durable."""
        self._conversation = None
        self._turns.append(turn)
        del self._turns[:-MAX_TURNS]

    def summarise(self, summary: Summary) -> None:
        """Let a durable summary stand for what it covers."""
        self._conversation = None
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
        self._conversation = None
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
    sources = [turn.foreign for turn in known.turns if turn.id <= summary.upto]
    if known.summary is not None:
        sources.append(known.summary.foreign)
    summary = replace(summary, foreign=next(filter(None, sources), ""))
    if session.mode != "otr":
        body: dict[str, Any] = {"text": summary.text, "upto": summary.upto}
        if summary.foreign:
            body["foreign"] = summary.foreign
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
    """Only turns that are over: a user message with neither an answer nor an error behind it belongs to a
    turn still to come, and the model must not answer it now."""
    asked: dict[str, str] = {}
    partial: dict[str, Record] = {}
    turns: list[PastTurn] = []
    summary: Summary | None = None
    for record in records:
        body = record.body
        if record.kind == "user":
            asked[record.message_id] = words_on_record(body)
        elif record.kind == "summary":
            summary = Summary(text=body["text"], upto=body["upto"], foreign=str(body.get("foreign", "")))
        elif record.kind == "assistant" and body.get("partial"):
            partial[record.message_id] = record  # the error that ended the turn follows it
        elif (question := asked.pop(record.message_id, None)) is not None:
            exchange = [message_from_plain(plain) for plain in body.get("exchange", ())]
            if record.kind == "assistant":
                turns.append(past_turn(record.id, question, exchange, body["text"], record.at))
            elif body["code"] not in UNSHOWN_FAILURES:
                words = partial.pop(record.message_id, None)
                number, said = (record.id, "") if words is None else (words.id, words.body["text"])
                turns.append(unanswered_turn(number, question, exchange, said, body["code"], record.at))
    if summary is not None:
        turns = [turn for turn in turns if turn.id > summary.upto]
    return Conversation(summary=summary, turns=tuple(turns))


def words_on_record(body: Mapping[str, Any]) -> str:
    """The body of a user's record as the model reads it: in a room behind its author's name."""
    return said_by(str(body["text"]), str(body.get("by", "")))


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


def unanswered_turn(
    record_id: int, question: str, exchange: Sequence[ChatMessage], partial: str, code: str, at: float
) -> PastTurn:
    """A message whose turn ended with the error `code`, as the model is shown it: what was said of the
    answer, and how it ended. `record_id` is that of the partial answer, of the error where there is none."""
    shown = _shown_words(exchange)
    rest = partial[partial.index(shown) + len(shown) :].strip() if shown in partial else partial.strip()
    mark = _ENDED.get(code, _FAILED)
    turn = PastTurn(
        id=record_id,
        messages=(
            ChatMessage(role="user", content=clean_text(question)),
            *exchange,
            ChatMessage(role="assistant", content=f"{rest}\n\n{mark}" if rest else mark),
        ),
        at=at,
    )
    return with_brief(turn)


def _last_words(exchange: Sequence[ChatMessage], answer: str) -> str:
    """The answer without what stands in the exchange already: an answer is everything that was shown, and
    the model is to see none of it twice. The whole of it where nothing else is left."""
    shown = _shown_words(exchange)
    # A line about what was left out of the message may stand above both.
    _, _, last = answer.partition(shown + "\n\n") if shown else ("", "", answer)
    return last or answer


def _shown_words(exchange: Sequence[ChatMessage]) -> str:
    """The words of the assistant's that stand in the exchange, as they were shown."""
    return "\n\n".join(
        message.content for message in exchange if message.role == "assistant" and message.content
    )
