"""What the nodes of one run are given besides the state: the parts that are not plain data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pipeline.domain.clock import Clock
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.messages import Speech
from pipeline.domain.rooms import RoomTalk
from pipeline.llm.client import LlmClient
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.ports import Budgets, FactBook, SkillBook, ToolGate, Workspace
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.settings import PipelineSettings


async def _shown_already(_text: str) -> None:
    """Nobody watches from the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """One run's surroundings. Never stored: a resumed run builds it again."""

    text: str
    """The user's words, typed or heard, as recorded."""
    by: str = ""
    """In a room: the name of who said them."""
    room: RoomTalk = field(default_factory=RoomTalk)
    """What others said in the room before; foreign words, kept nowhere."""
    speech: Speech | None
    """That they were spoken, and how well they were heard; None for typed words."""
    conversation: Conversation
    """The session before this message."""
    scope: TurnScope
    llm: LlmClient
    tools: ToolGate
    skills: SkillBook
    workspace: Workspace
    facts: FactBook
    budgets: Budgets
    clock: Clock
    settings: PipelineSettings
    on_text: Callable[[str], Awaitable[None]]
    """Streams a piece of the answer to whoever watches."""
    summarised: Callable[[Summary], Awaitable[bool]]
    """Makes a summary of the conversation's beginning durable; False where it came too late."""
    on_earlier: Callable[[str], Awaitable[None]] = _shown_already
    """Told of the answer so far before it grows: a process that goes on with another one's run shows it
    first, so that what is streamed is the whole answer."""
    redactor: Redactor = field(default_factory=Redactor)
    """Between the model and everything that its words reach."""
    received_at: float = 0.0
    """When the message arrived, as Unix time."""
    arrivals: tuple[float, ...] = ()
    """When its author's earlier ones did (see `TurnJournal.arrivals`)."""
