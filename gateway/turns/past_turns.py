"""Build the past turns of a conversation, as the model sees them, from what was said or from its records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gateway.storage.log_records import (
    NEWS,
    NEWS_FOREIGN,
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
from pipeline.runtime.arrivals import together
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
_BY_ITSELF = "[The user has not written. What follows you have sent them by yourself, in a heartbeat.]"
_HEARTBEATS_SOURCE = "what a heartbeat has read"


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
        self._asked: dict[str, dict[str, UserRecord]] = {}
        """What was said, by the message of the turn, then by message."""
        self._partial: dict[str, tuple[int, str]] = {}

    def add(self, record: Record) -> None:
        """Add the next record."""
        match content_of(record):
            case UserRecord(apart=True):
                # A run beside it: without its words, what it says is no part of the conversation either.
                pass
            case UserRecord() as user:
                self._asked.setdefault(user.turn or record.message_id, {})[record.message_id] = user
            case SummaryRecord(summary=summary):
                self.summary = summary
            case AssistantRecord(partial=True, text=text):
                # The error that ended the turn follows it.
                self._partial[record.message_id] = record.id, text
            case AssistantRecord() as answer if asked := self._asked.pop(record.message_id, None):
                question, source = asked_of(record.message_id, asked, answer.steered)
                kept = without(self.turns, source.root) if source.replaces else self.turns
                turn = past_turn(record.id, question, answer.exchange, answer.text, record.at, source)
                self.turns = [*kept, turn]
            case ErrorRecord() as error if asked := self._asked.pop(record.message_id, None):
                number, shown = self._partial.pop(record.message_id, (record.id, ""))
                question, source = asked_of(record.message_id, asked, error.steered)
                # A repeated answer that failed leaves the earlier one as it was.
                if not source.replaces and error.code not in UNSHOWN_FAILURES:
                    ended = (number, question, error.exchange, shown, error.code, record.at, source)
                    self.turns.append(unanswered_turn(*ended))
            case NoticeRecord(code=code, text=text) if code in (NEWS, NEWS_FOREIGN):
                self.turns.append(news_turn(record.id, text, record.at, foreign=code == NEWS_FOREIGN))
            case NoticeRecord(removed=root):
                self.turns = without(self.turns, root)


def without(turns: list[PastTurn], root: str) -> list[PastTurn]:
    """The turns without that of the message `root`; all if that is empty."""
    return [turn for turn in turns if turn.source.root != root] if root else turns


def asked_of(
    message_id: str, said: Mapping[str, UserRecord], steered: Collection[str]
) -> tuple[ChatMessage, Source]:
    """The question of a turn as the model sees it later, and its source, which has the words and files of all
    messages: `said`, by message id, oldest first. `message_id` is that of the turn; the words of the messages
    `steered` are in its exchange."""
    first = next(iter(said))
    seen = [user.words for one, user in said.items() if one not in steered]
    question = message_on_record(together(seen) if seen else UserWords(text=""))
    source = said.get(message_id, said[first]).source(message_id)
    if len(said) > 1:
        whole = together([user.words for user in said.values()])
        source = replace(source, text=whole.text, files=whole.files, attached=whole.attached)
    return question, source


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


def news_turn(record_id: int, text: str, at: float, *, foreign: bool) -> PastTurn:
    """What a heartbeat has sent its person, as the model sees it."""
    question = ChatMessage(role="user", content=_BY_ITSELF, foreign=_HEARTBEATS_SOURCE if foreign else "")
    return past_turn(record_id, question, (), text, at)


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
