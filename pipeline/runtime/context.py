"""What the nodes of one run are given besides the state: the parts that are not plain data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pipeline.domain.chat import ChatMessage
from pipeline.domain.messages import Speech
from pipeline.llm.client import LlmClient
from pipeline.runtime.settings import PipelineSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """One run's surroundings. Never stored: a resumed run builds it again."""

    text: str
    """The user's words, typed or heard, as recorded."""
    speech: Speech | None
    """That they were spoken, and how well they were heard; None for typed words."""
    history: tuple[ChatMessage, ...]
    """The session before this message, oldest first."""
    llm: LlmClient
    settings: PipelineSettings
    on_text: Callable[[str], Awaitable[None]]
    """Streams a piece of the answer to whoever watches."""
