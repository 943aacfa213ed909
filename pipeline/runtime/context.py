"""What the nodes of one run get in addition to the state: the parts that are not plain data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import field

from pipeline.domain.chat import PICTURE_TOKENS, ChatMessage, estimate_tokens
from pipeline.domain.clock import Clock
from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Speech
from pipeline.llm.client import LlmClient
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.attachments import Attachments
from pipeline.runtime.ports import Budgets, FactBook, History, SkillBook, ToolGate, Workspace
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.workflow_context import WorkflowContext


async def ignore_text(_text: str) -> None:
    """Ignore the text, for a host without live output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeredWords:
    """The words of one message for a run in progress."""

    message_id: str
    message: ChatMessage


async def none_steered(_known: Collection[str]) -> Sequence[SteeredWords]:
    """No messages, for a host that has none for a run in progress."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The context of one run. Never stored: a resumed run builds it again."""

    text: str
    """The user's words, typed or transcribed, as recorded."""
    by: str = ""
    """In a room: the name of their author."""
    files: tuple[StoredFile, ...] = ()
    """The files that came with the words."""
    attached: str = ""
    """What the model reads of the files, below the words."""
    attachments: Attachments | None = None
    """Loads the pictures that the model is shown; None if there are none."""
    speech: Speech | None
    """Set for spoken words, with the quality of their transcription; None for typed words."""
    history: History
    """What was said before this message. Not read before a node needs it."""
    scope: TurnScope
    llm: LlmClient
    tools: ToolGate
    skills: SkillBook
    workspace: Workspace
    """As `history`: its texts are read once a turn, by the node that needs them first."""
    facts: FactBook
    budgets: Budgets
    clock: Clock
    settings: PipelineSettings
    on_text: Callable[[str], Awaitable[None]]
    """Streams a part of the answer to the clients."""
    on_earlier: Callable[[str], Awaitable[None]] = ignore_text
    """Gets the answer so far before it grows: a process that resumes the run of another process shows it
    first, so that the whole answer is streamed."""
    steered: Callable[[Collection[str]], Awaitable[Sequence[SteeredWords]]] = none_steered
    """What the author sent meanwhile, without the messages with the given ids."""
    crisis_level: int = 0
    """What the crisis gate says about the words: 1 for ambiguous words or severe distress, else 0."""
    fails_closed: bool = False
    """A check that cannot be made fails its node, where a conversation would use a default."""
    redactor: Redactor = field(default_factory=Redactor)
    """Removes secrets from everything that the model writes."""
    received_at: float = 0.0
    """When the message arrived, as Unix time."""
    arrivals: tuple[float, ...] = ()
    """When its author's earlier messages arrived (see `TurnJournal.arrivals`)."""
    workflow: WorkflowContext | None = None
    """Memory, for an agent that has any."""

    @property
    def file_tokens(self) -> int:
        """Estimated tokens of the files that came with the words."""
        if not self.files:
            return 0
        pictures = sum(file.kind == "image" for file in self.files) if self.settings.vision else 0
        return estimate_tokens(self.attached) + pictures * PICTURE_TOKENS
