"""The port to a language model: a request in, a stream of text out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from pipeline.domain.chat import ChatMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRequest:
    """One call. `messages` starts with the system message, if there is one."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int = 1024
    temperature: float = 0.2
    timeout_s: float = 60.0
    """Deadline of the whole call in seconds, the wait for the first token and retries included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The next piece of the answer; never empty."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmFinished:
    """The last item of every stream that did not fail."""

    finish_reason: str
    """`stop`, `length`, or what the provider says."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


LlmItem = TextDelta | LlmFinished


class LlmClient(Protocol):
    """A model. One client serves many concurrent streams."""

    def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """Yield text deltas, then one `LlmFinished`.

        Raises ModelUnavailable, ModelRejected or ModelTimeout. Cancelling the consumer, or closing
        the iterator, stops the generation at the provider.
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
