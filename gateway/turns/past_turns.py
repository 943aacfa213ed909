"""Build the past turns of a conversation, as the model sees them, from what was said or from its records."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.storage.log_records import (
    AssistantRecord,
    ErrorRecord,
    NoticeRecord,
    SummaryRecord,
    UserRecord,
    content_of,
)
from gateway.storage.ports import Record
from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import NO_SOURCE, Conversation, PastTurn, Source, Summary
from pipeline.domain.rooms import said_by
from pipeline.history.attached_files import asked_message
from pipeline.history.stale_results import with_brief
from pipeline.intake.cleaning import clean_text
from pipeline.runtime.before_message import NOT_CHECKED
from pipeline.runtime.ports import UserWords

UNSHOWN_FAILURES = ("gave_up", "unreadable", "quota", NOT_CHECKED)
"""Codes of failures whose message is hidden from later turns: its words may have crashed the process or have
never reached the agent."""
_ENDED = {
    "stopped": "[Stopped by the user before the answer was complete.]",
    "timeout": "[Given up before the answer was complete: it took too long.]",
    "budget": "[Not answered: the budget was used up.]",
}
_FAILED = "[Not answered: an error ended the turn.]"


def conversation_of(records: Sequence[Record]) -> Conversation:
    """The conversation from finished turns only: a user message without an answer or error after it belongs
    to a turn that has yet to run, and the model must not answer it now."""
    past = _Past()
    for record in records:
        past.add(record)
    turns, summary = past.turns, past.summary
    if summary is not None:
        turns = [turn for turn in turns if turn.id > summary.upto]
    return Conversation(summary=summary, turns=tuple(turns))


class _Past:
    """The turns of the records so far."""

    def __init__(self) -> None:
        self.turns: list[PastTurn] = []
        self.summary: Summary | None = None
        self._asked: dict[str, UserRecord] = {}
        self._partial: dict[str, tuple[int, str]] = {}

    def add(self, record: Record) -> None:
        """Add the next record."""
        match content_of(record):
            case UserRecord() as user:
                self._asked[record.message_id] = user
            case SummaryRecord(summary=summary):
                self.summary = summary
            case AssistantRecord(partial=True, text=text):
                # The error that ended the turn follows it.
                self._partial[record.message_id] = record.id, text
            case AssistantRecord() as answer if asked := self._asked.pop(record.message_id, None):
                self.turns = [*without(self.turns, asked.replaces), _answered(record, asked, answer)]
            case ErrorRecord() as error if asked := self._asked.pop(record.message_id, None):
                said = self._partial.pop(record.message_id, (record.id, ""))
                # A repeated answer that failed leaves the earlier one as it was.
                if not asked.replaces and error.code not in UNSHOWN_FAILURES:
                    self.turns.append(_unanswered(record, asked, error, said))
            case NoticeRecord(removed=root):
                self.turns = without(self.turns, root)


def without(turns: list[PastTurn], root: str) -> list[PastTurn]:
    """The turns without that of the message `root`; all if that is empty."""
    return [turn for turn in turns if turn.source.root != root] if root else turns


def _answered(record: Record, user: UserRecord, answer: AssistantRecord) -> PastTurn:
    question, source = message_on_record(user.words), user.source(record.message_id)
    return past_turn(record.id, question, answer.exchange, answer.text, record.at, source)


def _unanswered(record: Record, user: UserRecord, error: ErrorRecord, said: tuple[int, str]) -> PastTurn:
    question, source = message_on_record(user.words), user.source(record.message_id)
    return unanswered_turn(said[0], question, error.exchange, said[1], error.code, record.at, source)


def message_on_record(words: UserWords) -> ChatMessage:
    """A user's words and files as the model reads them: in a room with the author's name first."""
    said = clean_text(said_by(words.text, words.by))  # as it was sent when it was new
    if not words.files:
        return ChatMessage(role="user", content=said)
    return asked_message(said, words.files, words.attached)


def past_turn(
    record_id: int,
    question: ChatMessage,
    exchange: Sequence[ChatMessage],
    answer: str,
    at: float,
    source: Source = NO_SOURCE,
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
        source=source,
    )
    return with_brief(turn)


def unanswered_turn(
    record_id: int,
    question: ChatMessage,
    exchange: Sequence[ChatMessage],
    partial: str,
    code: str,
    at: float,
    source: Source = NO_SOURCE,
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
        source=source,
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
