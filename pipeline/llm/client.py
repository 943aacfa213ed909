"""The port to a language model: a request in, a stream of text and tool calls out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import field
from typing import Protocol

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.frozen import dataclass
from pipeline.domain.json_schema import JsonSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRequest:
    """One call. `messages` starts with the system message, if there is one."""

    messages: tuple[ChatMessage, ...]
    pictures: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The bytes of the pictures in `messages`, by the ids of their files. For a model that sees none, there
    are none."""
    tools: tuple[ToolDefinition, ...] = ()
    """The tools that the model may call."""
    asked: str = ""
    """The user's newest text alone: in a room, the last message also has other people's text and a name."""
    schema: JsonSchema | None = None
    """The form of the answer, for a request without tools. A client that can holds the model to it; the
    others ignore it, so the messages have to name the form too (see `pipeline.llm.structured`)."""
    max_tokens: int = 1024
    temperature: float = 0.2
    timeout_s: float = 60.0
    """Seconds to the first token, retries included, and then from one token to the next. A call that keeps
    producing tokens has no other limit: a caller that waits for the whole answer sets its own deadline."""
    retries: int | None = None
    """The most attempts after the first; None: the client's own setting. All calls for one message share a
    bounded number of retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The next part of the answer; never empty."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAsked:
    """A whole tool call of the model, yielded after the text before it. Its `id` is never empty."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmFinished:
    """The last item of every stream that did not fail."""

    finish_reason: str
    """`stop`, `length`, `tool_calls`, or the provider's own value."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """US dollars; 0 where the price is unknown."""
    attempts: int = 1
    """Calls that the provider got for this answer."""


LlmItem = TextDelta | ToolAsked | LlmFinished


class LlmClient(Protocol):
    """A model. One client serves many concurrent streams."""

    def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """Yield text deltas, then the tool calls in their order, then one `LlmFinished`.

        Raises ModelUnavailable (also for an answer without text and calls), ModelRejected or ModelTimeout.
        Cancelling the consumer, or closing the iterator, stops the generation at the provider.
        """
        ...

    async def warm_up(self) -> None:
        """Do the preparation that the first call would otherwise wait for. Safe to call more than once."""
        ...

    async def close(self) -> None:
        """Release connections and child processes."""
        ...

    def status(self) -> str:
        """One readable line: `ready`, `loading`, or the problem and its remedy."""
        ...
