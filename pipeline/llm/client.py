"""The port to a language model: a request in, a stream of text and tool calls out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRequest:
    """One call. `messages` starts with the system message, if there is one."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    """What the model may ask for."""
    asked: str = ""
    """The newest words of the user alone: in a room the last message holds other people's, and a name."""
    max_tokens: int = 1024
    temperature: float = 0.2
    timeout_s: float = 60.0
    """Seconds to the first token, retries included, and from then on from one to the next. A call that goes
    on saying something has no other end: whoever waits for the whole sets a deadline of their own."""
    retries: int | None = None
    """How many further attempts the client may make after the first; None: as many as it is set to. One
    message has a bounded number of them, whatever it takes to answer it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The next piece of the answer; never empty."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAsked:
    """The model asks for a tool; whole, after the text that stands before it. Its `id` is never empty."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmFinished:
    """The last item of every stream that did not fail."""

    finish_reason: str
    """`stop`, `length`, `tool_calls`, or what the provider says."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """US dollars, where the price is known."""
    attempts: int = 1
    """Calls that the provider got for it."""


LlmItem = TextDelta | ToolAsked | LlmFinished


class LlmClient(Protocol):
    """A model. One client serves many concurrent streams."""

    def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """Yield text deltas, then the tool calls in their order, then one `LlmFinished`.

        An answer of neither text nor calls is ModelUnavailable. Raises that, ModelRejected or ModelTimeout.
        Cancelling the consumer, or closing the iterator, stops the generation at the provider.
        """
        ...

    async def warm_up(self) -> None:
        """Do now what the first call would otherwise wait for. Safe to call more than once."""
        ...

    async def close(self) -> None:
        """Release connections and child processes."""
        ...

    def status(self) -> str:
        """One line for people: `ready`, `loading`, or what is wrong and what to do."""
        ...
