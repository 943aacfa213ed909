"""Repeat a call with an empty answer once, with a shorter conversation, for every client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.llm.client import LlmClient, LlmFinished, LlmItem, LlmRequest
from pipeline.llm.failures import EmptyAnswer

LAST_MESSAGES = 3
"""The messages of the conversation in the second call."""


async def read_answer(
    llm: LlmClient, request: LlmRequest, clock: Clock, take: Callable[[LlmItem], Awaitable[None]]
) -> None:
    """Give `take` each item of `llm.stream(request)`; an empty answer is replaced by a second call with the
    system message and the last messages.

    That call counts as one of the retries and keeps the first one's deadline. `LlmFinished` covers both calls
    together. Raises what `stream` raises: EmptyAnswer if the second answer is empty too, or is not allowed.
    The stream is closed on every exit, which stops the model.
    """
    begun, first = clock.monotonic(), None
    while True:
        stream = llm.stream(request)
        try:
            async for item in stream:
                await take(_both(first, item) if first and isinstance(item, LlmFinished) else item)
        except EmptyAnswer as empty:
            if first is not None:
                raise EmptyAnswer(str(empty), finished=_both(first, empty.finished)) from None
            first = empty.finished
            left = None if request.retries is None else request.retries - first.attempts
            if left is not None and left < 0:
                raise
        else:
            return
        finally:
            await stream.aclose()
        rest = max(request.timeout_s - (clock.monotonic() - begun), 0.0)
        request = replace(request, messages=shortened(request.messages), timeout_s=rest, retries=left)


def shortened(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """The system message and the last messages, which begin with the user and include the call of every
    result: providers refuse other forms."""
    system = tuple(message for message in messages[:1] if message.role == "system")
    talk = messages[len(system) :]
    start = max(0, len(talk) - LAST_MESSAGES)
    while start > 0 and talk[start].role == "tool":
        start -= 1
    kept = tuple(talk[start:])
    if kept and kept[0].role != "user":
        kept = (*[message for message in talk[:start] if message.role == "user"][-1:], *kept)
    return (*system, *kept)


def _both(first: LlmFinished, second: LlmFinished) -> LlmFinished:
    return replace(
        second,
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        cost=first.cost + second.cost,
        attempts=first.attempts + second.attempts,
    )
