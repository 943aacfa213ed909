"""What the pipeline asks of whoever hosts it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.events import Thought
from pipeline.domain.messages import ApprovalReply, InboundMessage, Mode, Speech
from pipeline.domain.rooms import RoomTalk
from pipeline.graph.definition.ports import RunLog
from pipeline.graph.run.outcome import Gate
from pipeline.graph.run.records import RawRecord
from pipeline.runtime.scope import TurnScope


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWords:
    """What a user said, as it is on record."""

    text: str
    speech: Speech | None = None
    """That it was spoken, and how well it was heard; None for typed words."""
    by: str = ""
    """In a room: the name that stands before the words where the model reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswer:
    """What a turn commits: an answer for the user, or the questions that its run waits for."""

    text: str
    thoughts: tuple[Thought, ...] = ()
    exchange: tuple[ChatMessage, ...] = ()
    """What the model and its tools said between the user's words and the answer; later turns are shown it."""
    gates: tuple[Gate, ...] = ()
    """Open gates: whoever wrote the message may answer them."""


class TurnJournal(Protocol):
    """The durable side of one turn. Records are written in the order of the calls.

    A failed write fails the turn at the next awaited call; nothing visible happens before
    `commit` returned. A turn that answers a gate goes on with the run of an earlier message: its words
    and its records are that message's.
    """

    @property
    def session_id(self) -> str:
        """The session this turn belongs to."""
        ...

    @property
    def mode(self) -> Mode:
        """The session's: of one off the record nothing that was said is kept."""
        ...

    @property
    def arrivals(self) -> tuple[float, ...]:
        """When the author's messages before this one arrived in this thread, as Unix times, oldest first;
        the last 30 at most, and none from before a restart. (seed 0: _inputTimestamps)"""
        ...

    async def conversation(self) -> Conversation:
        """The session's conversation before the message."""
        ...

    async def record_summary(self, summary: Summary) -> bool:
        """Let a summary stand for the conversation's beginning from now on, durably. False, and nothing
        changes, where the conversation is another one by now or is summarised further already."""
        ...

    async def recorded_user(self) -> UserWords | None:
        """The words that the run is about, if an earlier, interrupted attempt or turn recorded them."""
        ...

    async def record_user(self, words: UserWords) -> None:
        """Make the user's words durable. Doing it again for the same turn changes nothing."""
        ...

    def run_log(self) -> RunLog:
        """Where the run's records go. What its `finish` is given becomes part of the commit."""
        ...

    async def recorded_run(self) -> Sequence[RawRecord]:
        """The records of the message's newest run; empty for a fresh start."""
        ...

    async def commit(self, answer: TurnAnswer) -> int:
        """Answer, questions, outbox row, inbox done and fence check in one transaction; the entry's id."""
        ...

    async def commit_failure(
        self,
        code: str,
        message: str,
        *,
        recoverable: bool,
        partial: str,
        exchange: Sequence[ChatMessage] = (),
    ) -> int:
        """End the turn with a visible error instead of an answer; the error entry's id.

        `partial` is what was streamed before; it is kept as the assistant's words, so that the
        conversation shows what the user saw. `exchange` is what the model and its tools said before, each
        call with a result; later turns are shown both, and that the turn has no answer.
        """
        ...

    async def try_consume_as_answer(self, words: str) -> bool:
        """Whether `words`, spoken instead of a press, answer a question of this thread that a paused run asks
        their speaker. The turn is over then: another one goes on with that run."""
        ...

    async def decline(self) -> None:
        """End the turn without a word or a trace in the conversation: it was not for the bot."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcription:
    """A transcript."""

    text: str
    language: str
    confidence: float
    cut_after_s: float | None = None
    """The note was longer than may be heard: so many seconds of it were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptionQueued:
    """The note waits behind others."""

    ahead: int
    eta_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTranscription:
    """The words of the note's beginning."""

    text: str


OnTranscription = Callable[[TranscriptionQueued | PartialTranscription], Awaitable[None]]


class SpeechToText(Protocol):
    """Turns a message's voice note into text."""

    async def hear(self, message: InboundMessage, on_progress: OnTranscription) -> Transcription:
        """The note's words; `on_progress` is told how it goes meanwhile, in order. Raises TurnFailed with a
        reason for the user; never invents text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What came of a tool call, for the model."""

    content: str
    """Never empty: a tool that has nothing to say, or was refused, says so."""
    success: bool = True
    summary: str = ""
    """One line for people; at most 200 characters."""
    groups: tuple[str, ...] = ()
    """Tool groups that are loaded from now on, for this message."""
    skills: tuple[str, ...] = ()
    """Skills that are loaded from now on, for this message."""
    foreign: str = ""
    """Whose words `content` holds, where they are neither the author's nor the operator's."""
    answer: str = ""
    """What people may be told of it in place of words of the model; empty where only those will do."""


EXECUTION: Final = "execute:"
"""In front of a call's id: the key of the effect (`Step.effect`) that carries the call out. Its result has
the `text`, and whether that is the tool's `content` rather than the gate's own words."""


class ToolGate(Protocol):
    """The only way from the agent to a tool: it proposes, and the gate decides, acts and reports.

    `action_started`, `shield_verdict` and `action_completed` go to the scope's `send`, in this order.
    """

    async def prepare(self, groups: Sequence[str], scope: TurnScope) -> None:
        """List the tools of the loaded `groups` that this process has not listed yet: an earlier process
        loaded them. A group that does not answer is left out. Call it before `offered`."""
        ...

    def offered(self, groups: Sequence[str], scope: TurnScope) -> tuple[ToolDefinition, ...]:
        """What the model may call when `groups` are loaded: `load_tools` alone when none are."""
        ...

    async def propose(self, call: ToolCall, groups: Sequence[str], scope: TurnScope) -> ToolResult:
        """Have a call judged, perhaps by a person, and done. Called from a node of a running graph.

        Whatever goes wrong is a result in words: unknown tools, arguments that are no JSON, refusals, errors
        of the tool and deadlines. Only StorageError and cancellation propagate.
        """
        ...


class Approvals(Protocol):
    """People who allow what the bot may not do by itself."""

    async def ask(
        self,
        scope: TurnScope,
        *,
        action_id: str,
        action_hash: str,
        tool_name: str,
        summary: str,
        reasoning: str,
    ) -> Literal["allowed", "refused", "expired"]:
        """Ask the turn's author, and nobody else, for one action; wait for the answer.

        Asked again under the same `action_id`, after a crash, it goes on with the same question; an answer
        given for another `action_hash` is none. Raises StorageError where the question cannot be kept.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSummary:
    """A skill as the model is told of it before it is loaded."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderNote:
    """Something that is to be said later, in the chat where it was asked for."""

    id: str
    due: float
    """Unix time."""
    text: str
    offset_s: int = 0
    """Of the time zone in which its time was given, in seconds east of UTC."""


class Reminders(Protocol):
    """What a turn's owner wants to be reminded of. Nobody else sees or cancels it."""

    async def add(self, note: ReminderNote, scope: TurnScope, *, limit: int) -> bool:
        """Keep it, durably; False where the owner has `limit` already."""
        ...

    async def of(self, scope: TurnScope) -> tuple[ReminderNote, ...]:
        """The owner's, soonest first."""
        ...

    async def remove(self, note_id: str, scope: TurnScope) -> bool:
        """Take one of the owner's back; False where there is none of that id."""
        ...


class Rooms(Protocol):
    """What the channels tell of the people in their rooms, and of what was said there."""

    async def named(self, message: InboundMessage) -> InboundMessage:
        """The message with its author's name, and the names of those it mentions, where its channel tells
        ids alone. The same message where nobody can say. Never raises but CancelledError."""
        ...

    async def talk(self, message: InboundMessage | ApprovalReply, said: Conversation) -> RoomTalk:
        """What was said in the message's room before it, but for what stands in `said`; nothing for a
        private chat, and where the operator does not want it read. Never raises but CancelledError."""
        ...


class SkillBook(Protocol):
    """The skills of the bot."""

    def summaries(self) -> tuple[SkillSummary, ...]:
        """Every usable skill, by name."""
        ...

    def body(self, name: str) -> str | None:
        """A skill's instructions; None where there is no such skill."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceTexts:
    """What the operator, and the person, have written down for the prompt; empty where there is nothing."""

    identity: str = ""
    soul: str = ""
    agents: str = ""
    user: str = ""
    memory: str = ""
    time_zone: str = ""
    """The person's own, by its IANA name; empty where they named none."""


class Workspace(Protocol):
    """The folder of the bot's own texts."""

    def texts(self, scope: TurnScope) -> WorkspaceTexts:
        """The newest texts for a turn. Never another person's. Quick: files are read when they change."""
        ...


class FactBook(Protocol):
    """Where lasting facts about people are written down for later prompts."""

    async def remember(self, scope: TurnScope, facts: Sequence[str]) -> None:
        """Add facts to the book of the scope's owner, as `pipeline.history.facts.with_facts` does. Called for
        private chats alone, never off the record. Raises StorageError where it could not be written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a turn may spend."""

    model: str = "full"
    """`full`; `cheaper` where the budget is nearly spent and there is a cheaper model; `none`."""
    words: str = ""
    """Why not the full model, for the user."""


class Budgets(Protocol):
    """Bounds on tokens and cost, of a person, a chat and a day, shared by everything that calls a model."""

    async def allowance(self, scope: TurnScope) -> Allowance:
        """What a turn that begins now may spend."""
        ...

    async def spent(self, scope: TurnScope, *, tokens: int, cost: float) -> None:
        """Count what a call has used; `cost` in US dollars."""
        ...


class InertLinks(Protocol):
    """Takes the links out of a text for people; the host's, for it knows how its channels read Markdown."""

    def __call__(self, markdown: str, may_link: Callable[[str], bool], *, rewrite: bool = False) -> str:
        """`markdown` with the host in place of every address whose host, in lower case, `may_link` does not
        allow. `rewrite`: as Markdown that stands by itself, whatever stands around it. Never raises."""
        ...
