"""The ports that the host of the pipeline implements."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, Protocol

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.events import Thought
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import ApprovalReply, InboundMessage, Mode, Speech
from pipeline.domain.rooms import RoomTalk
from pipeline.graph.definition.ports import RunLog
from pipeline.graph.run.outcome import Gate
from pipeline.graph.run.records import RawRecord
from pipeline.runtime.kept_state import StateChange, Stored
from pipeline.runtime.scope import TurnScope
from pipeline.safety.assessment import CrisisAssessment
from pipeline.schedules.repetition import Repetition


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWords:
    """A user's words as recorded."""

    text: str
    speech: Speech | None = None
    """Set for spoken words, with the quality of their transcription; None for typed words."""
    by: str = ""  # in a room: the name that precedes the words for the model
    files: tuple[StoredFile, ...] = ()
    """The files that came with the words and can be used."""
    attached: str = ""
    """What the model reads of the files, below the words; people do not see it."""
    left_out: str = ""
    """A line for the person about attachments that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswer:
    """What a turn commits: an answer for the user, or the questions that its run waits for."""

    text: str
    thoughts: tuple[Thought, ...] = ()
    exchange: tuple[ChatMessage, ...] = ()
    """The messages of the model and its tools before the answer; later turns see them."""
    gates: tuple[Gate, ...] = ()
    """Open gates: the author of the message may answer them."""
    state: StateChange | None = None
    """What the run changed in the state that outlives it; committed with the answer."""
    steered: tuple[str, ...] = ()
    """The ids of the messages that came during the run; their words are in `exchange`."""
    files: tuple[StoredFile, ...] = ()
    """Files that are sent with the answer, in this order."""
    crisis: CrisisAssessment | None = None
    """Set for a crisis response: recorded, without words, in the same commit."""
    continues: bool = False
    """The run continues after the answer, as work that the same commit makes durable."""
    turn: int = 0
    """The number of the turn in its session, from 1, where the graph counts them."""


class KeptStateReader(Protocol):
    """State that earlier runs have left."""

    async def read(self, graph: str) -> Stored:
        """The stored state of that graph, this session and the message's author; empty off the record."""
        ...


class History(Protocol):
    """What was said before a message, read when a node first needs it. A failed read is tried again."""

    async def conversation(self) -> Conversation:
        """The session's conversation before the message; the turn's later answers count as drawn from the
        foreign text in it. Raises TurnFailed with a readable reason."""
        ...

    async def room(self) -> RoomTalk:
        """What others wrote in the room before; empty for a private chat. Raises as `conversation`."""
        ...

    async def summarise(self, summary: Summary) -> bool:
        """Replace the conversation's beginning by a summary, for this turn and durably. False if it came too
        late to be durable."""
        ...


class TurnSession(Protocol):
    """The session of a turn."""

    @property
    def session_id(self) -> str:
        """The session this turn belongs to."""
        ...

    @property
    def mode(self) -> Mode:
        """The session's mode: off the record, no words are stored."""
        ...

    @property
    def arrivals(self) -> tuple[float, ...]:
        """When the author's messages before this one arrived in this thread, as Unix times, oldest first;
        the last 30 at most, and none from before a restart."""
        ...

    async def conversation(self) -> Conversation:
        """The session's conversation before the message."""
        ...

    async def record_summary(self, summary: Summary) -> bool:
        """Durably replace the conversation's beginning by a summary. False, without a change, if the
        conversation is a different one by now or a summary already covers more."""
        ...


class TurnJournal(TurnSession, Protocol):
    """The durable side of one turn. Records are written in the order of the calls.

    A failed write fails the turn at the next awaited call; nothing visible happens before
    `commit` returned. A turn that answers a gate resumes the run of an earlier message: its words and its
    records are those of that message.
    """

    async def recorded_user(self, message: InboundMessage | None = None) -> UserWords | None:
        """The words of the run, or of a `message` that has joined it, if an interrupted attempt has them."""
        ...

    async def record_user(self, words: UserWords, message: InboundMessage | None = None) -> None:
        """Make the words of the turn's first message, or of one that has joined it, durable: once each."""
        ...

    async def begin_again(self) -> None:
        """Drop a run that has recorded its first step at most, durably: another run follows in this turn."""

    @property
    def kept(self) -> KeptStateReader:
        """The state that outlives runs."""
        ...

    def run_log(self) -> RunLog:
        """The log of the run's records. The records of its `finish` become part of the commit."""
        ...

    async def recorded_run(self) -> Sequence[RawRecord]:
        """The records of the message's newest run; empty if there is none."""
        ...

    async def commit(self, answer: TurnAnswer) -> int:
        """Store answer, questions and outbox row, finish the inbox entry and check the fence, in one
        transaction. Returns the entry's id."""
        ...

    async def commit_failure(
        self,
        code: str,
        message: str,
        *,
        recoverable: bool,
        partial: str,
        exchange: Sequence[ChatMessage] = (),
        steered: Sequence[str] = (),
    ) -> int:
        """End the turn with a visible error instead of an answer; the error entry's id.

        `partial` is the text streamed before; it is kept as the assistant's words, so that the conversation
        shows what the user saw. `exchange` holds the earlier messages of the model and its tools, each call
        with a result. Later turns see both, and that the turn has no answer.
        """
        ...

    async def try_consume_as_answer(self, words: str) -> bool:
        """Whether spoken `words` answer a question of this thread that a paused run asks their speaker. If
        so, this turn is over, and another one resumes that run."""
        ...

    async def decline(self) -> None:
        """End the turn without an answer or an entry in the conversation: it was not for the bot."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcription:
    """A transcript."""

    text: str
    language: str
    confidence: float
    seconds: float = 0.0
    """The length of what was transcribed."""
    cut_after_s: float | None = None
    """Set if the note was longer than allowed: the number of seconds that were transcribed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionQueued:
    """The note waits for `ahead` others; `eta_s` is the estimated wait in seconds."""

    ahead: int
    eta_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTranscription:
    """The transcript of the note's beginning."""

    text: str


OnTranscription = Callable[[TranscriptionQueued | PartialTranscription], Awaitable[None]]


class SpeechToText(Protocol):
    """Turns a message's voice note into text."""

    async def transcribe(self, message: InboundMessage, on_progress: OnTranscription) -> Transcription:
        """Transcribe the note, and report progress in order. Raises TurnFailed; never invents text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call, for the model."""

    content: str
    """Never empty: also says that a tool was refused or returned nothing."""
    success: bool = True
    summary: str = ""
    """One line for people; at most 200 characters."""
    groups: tuple[str, ...] = ()
    """Tool groups that are loaded from now on, for this message."""
    skills: tuple[str, ...] = ()
    """Skills that are loaded from now on, for this message."""
    foreign: str = ""
    """The source of the words in `content`, if not the author or the operator."""
    answer: str = ""
    """An answer for people that may replace the model's; empty if the model has to write it."""
    files: tuple[StoredFile, ...] = ()
    """Files that the tool returned; they are sent with the answer."""


EXECUTION: Final = "execute:"
"""Prefix of a call's id in the key of the effect (`Step.effect`) that executes the call. Its result has the
`text`, and whether that is the tool's `content` or a text of the gate."""


class ToolGate(Protocol):
    """The agent's only access to tools: the agent proposes a call; the gate decides, executes and reports.

    `action_started`, `shield_verdict` and `action_completed` go to the scope's `send`, in this order.
    """

    async def prepare(self, groups: Sequence[str], scope: TurnScope) -> None:
        """List the tools of those loaded `groups` that this process has not listed, because an earlier
        process loaded them. A group that does not respond is left out. Call it before `offered`."""
        ...

    def offered(self, groups: Sequence[str], scope: TurnScope) -> tuple[ToolDefinition, ...]:
        """The tools that the model may call with `groups` loaded: only `load_tools` without any."""
        ...

    async def propose(self, call: ToolCall, groups: Sequence[str], scope: TurnScope) -> ToolResult:
        """Check a call, possibly ask a person, and execute it. Call it from a node of a running graph.

        Every failure is a result with a readable text: unknown tools, arguments that are no JSON, refusals,
        errors of the tool and deadlines. Only StorageError and cancellation propagate.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSummary:
    """The description of a skill that the model sees before it is loaded."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderNote:
    """A reminder or another schedule: said or answered later in the chat where it was requested."""

    id: str
    due: float
    """Unix time; of a repeated one the next, and of one that is paused no time that counts."""
    text: str
    offset_s: int = 0
    """Offset of the time zone in which its time was given, in seconds east of UTC."""
    repetition: Repetition | None = None
    """None for once."""
    does: Literal["say", "answer", "run"] = "say"
    """Say the text, answer it as a message of the person, or run the `workflow` of that name with it."""
    workflow: str = ""
    if_missed: Literal["once", "skip"] = "once"
    """What becomes of times at which the gateway did not run: one late repeat that says so, or nothing."""
    paused: bool = False


class Reminders(Protocol):
    """The reminders of a turn's owner. No other person sees or cancels them."""

    async def add(self, note: ReminderNote, scope: TurnScope, *, limit: int) -> bool:
        """Store it durably; False if the owner already has `limit` reminders."""
        ...

    async def of(self, scope: TurnScope) -> tuple[ReminderNote, ...]:
        """The owner's reminders, soonest first."""
        ...

    def workflows(self, scope: TurnScope) -> tuple[str, ...]:
        """The names of the workflows that the turn's author may run in the chat."""

    async def remove(self, note_id: str, scope: TurnScope) -> bool:
        """Delete one of the owner's reminders; False if the owner has none with that id."""
        ...

    async def pause(self, note_id: str, scope: TurnScope, *, paused: bool) -> bool:
        """Pause one of the owner's reminders, or continue it; False if the owner has none with that id, or
        if its time is over."""
        ...


class Rooms(Protocol):
    """Names of people and earlier messages in rooms, from the channels."""

    async def named(self, message: InboundMessage) -> InboundMessage:
        """The message with the names of its author and of mentioned people, if its channel gives only ids;
        unchanged if the names are unknown. Raises only CancelledError."""
        ...

    async def talk(self, message: InboundMessage | ApprovalReply, said: Conversation) -> RoomTalk:
        """What was written in the message's room before it, without what is in `said`; nothing for a private
        chat, or if the operator's settings forbid reading. Raises only CancelledError."""
        ...


class SkillBook(Protocol):
    """The skills of the bot."""

    def summaries(self) -> tuple[SkillSummary, ...]:
        """Every usable skill, by name."""
        ...

    def body(self, name: str) -> str | None:
        """A skill's instructions; None if there is no such skill."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceTexts:
    """Texts that the operator and the person have written for the prompt; empty if missing."""

    identity: str = ""
    soul: str = ""
    agents: str = ""
    user: str = ""
    memory: str = ""
    time_zone: str = ""
    """The IANA name of the person's time zone; empty if they named none."""


class Workspace(Protocol):
    """The folder of the texts for the prompt."""

    def texts(self, scope: TurnScope) -> WorkspaceTexts:
        """The newest texts for a turn, never another person's. Fast: files are read only when they change."""
        ...


class FactBook(Protocol):
    """Stores lasting facts about people for later prompts."""

    async def remember(self, scope: TurnScope, facts: Sequence[str]) -> None:
        """Add facts about the scope's owner, as `pipeline.history.facts.with_facts` does. Called only for
        private chats, never off the record. Raises StorageError if they could not be written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a turn may spend."""

    model: Literal["full", "cheaper", "none"] = "full"
    """`cheaper` if the budget is nearly spent and there is a cheaper model; `none`."""
    words: str = ""
    """For the user: why the full model is not used."""


class Budgets(Protocol):
    """Limits on tokens and cost per person, chat and day, shared by all code that calls a model."""

    async def allowance(self, scope: TurnScope) -> Allowance:
        """What a turn that begins now may spend."""
        ...

    async def spent(self, scope: TurnScope, *, tokens: int, cost: float) -> None:
        """Count the tokens and cost of a call; `cost` in US dollars."""
        ...
