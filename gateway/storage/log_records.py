"""Convert the records of a thread's log to plain data and back: what each kind of record holds.

Older and forgotten records may lack any field. The rows of a run are converted by `gateway.turns.run_codec`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from gateway.storage.ports import NewRecord, Record
from pipeline.domain.chat import ChatMessage, message_from_plain, message_to_plain
from pipeline.domain.conversation import NO_SOURCE, Source, Summary
from pipeline.domain.events import Thought, thought_from_plain, thought_to_plain
from pipeline.domain.files import StoredFile, stored_file_from_plain, stored_file_to_plain
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Mode, Speech
from pipeline.domain.timeline import AskedQuestion, question_to_plain
from pipeline.runtime.ports import TurnAnswer, UserWords

STEPS: Final = "steps"
"""The key of a run's last steps in the body of the record that shows its outcome."""
NEWS: Final = "heartbeat"
"""The code of a notice with what a heartbeat tells its person, which the model sees in the conversation."""
NEWS_FOREIGN: Final = "heartbeat_foreign"
"""The same, if it rests on foreign text."""
_FILES: Final = "files"
_QUESTIONS: Final = "questions"
_PAUSED_FOR: Final = "paused_for"
_TURN: Final = "turn"
_TOGETHER: Final = "together"
_STEERED: Final = "steered"
_REMOVED: Final = "removed"
_APART: Final = "apart"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """The beginning of a session."""

    text: str
    """Its visible line; empty for a thread's first session."""
    mode: Mode
    agent: str = ""
    """The agent that a person chose for it; empty where none was chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRecord:
    """What a person said."""

    words: UserWords
    agent: str = ""
    """The agent that answers it; empty for the default one."""
    turn: str = ""
    """The id of the earlier message whose turn answers it too; empty if it has a separate turn."""
    replaces: str = ""
    """The message whose turn its answer replaces; empty for none."""
    author: str = ""
    """The author's id, in a room."""
    answers: bool = False
    """It is an answer to a question of a paused run."""
    apart: bool = False
    """Its turn is a run beside the conversation: /run began it."""

    @staticmethod
    def of(record: Record) -> UserRecord:
        """What a record of that kind holds."""
        body = record.body
        return UserRecord(
            words=words_of(record),
            agent=str(body.get("agent", "")),
            turn=str(body.get(_TURN, "")),
            replaces=str(body.get("replaces", "")),
            author=str(body.get("author", "")),
            answers=bool(body.get("answers")),
            apart=bool(body.get(_APART)),
        )

    def source(self, message_id: str) -> Source:
        """The message, as a turn of the conversation names it."""
        return Source(
            message_id=message_id,
            root=self.replaces or message_id,
            text=self.words.text,
            author=self.author,
            answers=self.answers,
            files=self.words.files,
            attached=self.words.attached,
        )

    @property
    def text(self) -> str:
        return self.words.text


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A row of a run."""

    row: Mapping[str, Any]
    text: str = ""

    @property
    def begins_run(self) -> bool:
        return isinstance(self.row.get("run"), str)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRecord:
    """The end of a turn, with what the turn needed. These parts are converted where they are read: the model
    needs no thoughts, and a timeline needs no exchange."""

    text: str
    body: Mapping[str, Any] = field(repr=False)

    @property
    def exchange(self) -> list[ChatMessage]:
        """What the model and its tools said."""
        return [message_from_plain(plain) for plain in self.body.get("exchange", ())]

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        return tuple(thought_from_plain(plain) for plain in self.body.get("thoughts", ()))

    @property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """The questions that were asked during the turn, oldest first."""
        asked: Iterable[Mapping[str, Any]] = self.body.get(_QUESTIONS, ())
        return tuple(AskedQuestion(**{**one, "options": tuple(one["options"])}) for one in asked)

    @property
    def paused_for(self) -> tuple[str, ...]:
        """The ids of the questions for which the turn pauses."""
        return tuple(self.body.get(_PAUSED_FOR, ()))

    @property
    def together(self) -> tuple[str, ...]:
        """The ids of the messages that joined the turn."""
        return tuple(self.body.get(_TOGETHER, ()))

    @property
    def steered(self) -> tuple[str, ...]:
        """The ids of those among them whose words are in the exchange."""
        return tuple(self.body.get(_STEERED, ()))

    @property
    def merged(self) -> tuple[str, ...]:
        """The ids of those whose words the turn's run began with."""
        return tuple(message for message in self.together if message not in self.steered)

    @property
    def steps(self) -> Sequence[Mapping[str, Any]] | None:
        """The last steps of the turn's run; None if no run has ended here."""
        steps: Sequence[Mapping[str, Any]] | None = self.body.get(STEPS)
        return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantRecord(OutcomeRecord):
    """An answer, or the part of one that was shown before its turn failed."""

    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord(OutcomeRecord):
    """Why a turn has no answer."""

    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRecord(OutcomeRecord):
    """A line of the gateway's own."""

    code: str

    @property
    def removed(self) -> str:
        """The message whose turn it takes out of the conversation; empty for none."""
        return str(self.body.get(_REMOVED, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRecord:
    """What replaces the beginning of a session for the model."""

    summary: Summary

    @property
    def text(self) -> str:
        return self.summary.text


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleRecord:
    """The title of a session from here on."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """The model that a person chose for the session from here on; empty for the agent's own."""

    name: str
    text: str = ""


LogRecord = (
    SessionRecord
    | UserRecord
    | StepRecord
    | AssistantRecord
    | ErrorRecord
    | NoticeRecord
    | SummaryRecord
    | TitleRecord
    | ModelRecord
)


def content_of(record: Record) -> LogRecord:
    """What the record holds."""
    body = record.body
    text = str(body.get("text", ""))
    match record.kind:
        case "user":
            return UserRecord.of(record)
        case "assistant":
            return AssistantRecord(text=text, body=body, partial=bool(body.get("partial")))
        case "error":
            return ErrorRecord(text=text, body=body, code=str(body.get("code", "")))
        case "notice":
            return NoticeRecord(text=text, body=body, code=str(body.get("code", "")))
        case "session":
            mode: Mode = "otr" if body.get("mode") == "otr" else "normal"
            return SessionRecord(text=text, mode=mode, agent=str(body.get("agent", "")))
        case "summary":
            foreign = str(body.get("foreign", ""))
            return SummaryRecord(summary=Summary(text=text, upto=int(body.get("upto", 0)), foreign=foreign))
        case "title":
            return TitleRecord(text=text)
        case "model":
            return ModelRecord(name=str(body.get("name", "")))
        case "step":
            return StepRecord(row=body)


def run_of(records: Iterable[Record]) -> str:
    """The id of the newest run among a message's records; empty without one."""
    found = ""
    for record in records:
        rows = (record.body, *record.body.get(STEPS, ()))
        found = next((row["run"] for row in rows if isinstance(row.get("run"), str)), found)
    return found


def text_of(record: Record) -> str:
    """The words that the record shows; empty for none."""
    return str(record.body.get("text", ""))


def is_visible(record: Record) -> bool:
    """Whether there is anything to show of it: words, or files without words."""
    return bool(text_of(record) or record.body.get(_FILES))


def place_of(record: Record) -> str:
    """The place of the message with files in a record; empty for any other."""
    return str(record.body.get("place", ""))


def files_of(record: Record | NewRecord) -> tuple[StoredFile, ...]:
    """The files of a record; empty for none."""
    return _files_in(record.body)


def words_of(record: Record) -> UserWords:
    """The words of a person's record. Older records hold no confidence for spoken words."""
    body, speech = record.body, None
    if body.get("spoken"):
        speech = Speech(
            language=str(body.get("language", "")),
            confidence=float(body.get("confidence", 1.0)),
            seconds=float(body.get("seconds", 0.0)),
            forwarded=bool(body.get("forwarded")),
        )
    return UserWords(
        text=text_of(record),
        speech=speech,
        by=str(body.get("by", "")),
        files=files_of(record),
        attached=str(body.get("attached", "")),
        left_out=str(body.get("left_out", "")),
    )


def session_body(text: str, mode: Mode, agent: str) -> dict[str, Any]:
    """The body of a SessionRecord."""
    given = {"text": text, "mode": "" if mode == "normal" else mode, "agent": agent}
    return {key: value for key, value in given.items() if value}


def user_body(
    words: UserWords,
    agent: str = "",
    *,
    turn: str = "",
    source: Source = NO_SOURCE,
    place: str = "",
    apart: bool = False,
) -> dict[str, Any]:
    """The body of a UserRecord; `agent` is the agent that answers, empty for the default one. All versions of
    the message have the `place`; it is stored with files, which are removed by it."""
    body: dict[str, Any] = {"text": words.text, "agent": agent} if agent else {"text": words.text}
    if turn:
        body[_TURN] = turn
    if words.by:
        body |= {"by": words.by, "author": source.author}
    if source.replaces:
        body["replaces"] = source.root
    if source.answers:
        body["answers"] = True
    if words.speech is not None:
        speech = words.speech
        body |= {"spoken": True, "language": speech.language, "confidence": speech.confidence}
        body |= {"seconds": speech.seconds} if speech.seconds else {}
        body |= {"forwarded": True} if speech.forwarded else {}
    if words.files:
        body[_FILES] = [stored_file_to_plain(file) for file in words.files]
        body |= {"place": place} if place else {}
    if words.attached:
        body["attached"] = words.attached
    if words.left_out:
        body["left_out"] = words.left_out
    return {**body, _APART: True} if apart else body


def answer_body(answer: TurnAnswer, paused_for: Sequence[str]) -> dict[str, Any]:
    """The body of an AssistantRecord with a whole answer."""
    body: dict[str, Any] = {"text": answer.text}
    if answer.thoughts:
        body["thoughts"] = [thought_to_plain(thought) for thought in answer.thoughts]
    body |= {**_exchange_body(answer.exchange), **_files_body(answer.files)}
    return {**body, _PAUSED_FOR: list(paused_for)} if paused_for else body


def partial_body(text: str) -> dict[str, Any]:
    """The body of an AssistantRecord with a part of an answer."""
    return {"text": text, "partial": True}


def error_body(text: str, code: str, *, recoverable: bool, exchange: Sequence[ChatMessage]) -> dict[str, Any]:
    """The body of an ErrorRecord."""
    return {"text": text, "code": code, "recoverable": recoverable, **_exchange_body(exchange)}


def notice_body(text: str, code: str, removed: str = "", files: Sequence[StoredFile] = ()) -> dict[str, Any]:
    """The body of a NoticeRecord."""
    body = {"text": text, "code": code} if code else {"text": text}
    return body | ({_REMOVED: removed} if removed else {}) | _files_body(files)


def summary_body(summary: Summary) -> dict[str, Any]:
    """The body of a SummaryRecord."""
    body: dict[str, Any] = {"text": summary.text, "upto": summary.upto}
    return {**body, "foreign": summary.foreign} if summary.foreign else body


def title_body(text: str) -> dict[str, Any]:
    """The body of a TitleRecord."""
    return {"text": text}


def together_body(joined: Sequence[str], steered: Sequence[str]) -> dict[str, Any]:
    """The part of an outcome's body that names the messages that joined the turn; empty without any."""
    known = {_TOGETHER: list(joined), _STEERED: list(steered)}
    return {key: ids for key, ids in known.items() if ids}


def questions_body(questions: Sequence[AskedQuestion]) -> dict[str, Any]:
    """The part of an outcome's body that holds the questions of its turn; empty without any."""
    return {_QUESTIONS: [question_to_plain(one) for one in questions]} if questions else {}


def _exchange_body(exchange: Sequence[ChatMessage]) -> dict[str, Any]:
    return {"exchange": [message_to_plain(message) for message in exchange]} if exchange else {}


def _files_body(files: Sequence[StoredFile]) -> dict[str, Any]:
    return {_FILES: [stored_file_to_plain(file) for file in files]} if files else {}


def _files_in(body: Mapping[str, Any]) -> tuple[StoredFile, ...]:
    plain = body.get(_FILES)
    return tuple(stored_file_from_plain(one) for one in plain) if plain else ()
