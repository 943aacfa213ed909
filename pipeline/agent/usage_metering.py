"""Count the tokens and cost of one answer of the model in the turn's budget, however the answer ends.

Not here: how much a turn may use, and on which model; `Budgets.allowance` decides that.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Self

from pipeline.domain.chat import estimate_tokens
from pipeline.domain.errors import ModelError, StorageError
from pipeline.llm.client import LlmFinished, LlmRequest, TextDelta
from pipeline.llm.failures import EmptyAnswer
from pipeline.runtime.context import RunContext


class UsageMeter:
    """Use with `async with` around the reading of one answer, whose reader sets `parts` and `finished`. An
    answer without an end is estimated.

    Raises StorageError where an answer that has arrived cannot be counted.
    """

    def __init__(self, request: LlmRequest, context: RunContext) -> None:
        self.parts: list[str] = []
        """The text that has arrived."""
        self.finished: LlmFinished | None = None
        self._request = request
        self._context = context

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is None:
            await _count(self.finished or self._estimated(), self._context)
        elif isinstance(error, EmptyAnswer):
            await _count(error.finished, self._context)
        elif isinstance(error, ModelError | asyncio.CancelledError) and (self.parts or self.finished):
            # A cancelled answer counts too, or a user who stops each answer just before its end pays nothing.
            with suppress(StorageError):
                await _count(self.finished or self._estimated(), self._context)

    def _estimated(self) -> LlmFinished:
        return LlmFinished(
            finish_reason="cut",
            prompt_tokens=sum(message.tokens for message in self._request.messages),
            completion_tokens=estimate_tokens("".join(self.parts)),
        )


async def metered_text(request: LlmRequest, context: RunContext, *, most_chars: int = 100_000) -> str:
    """The whole text of one answer, counted in the turn's budget; the rest of one that is too long is not
    read. Raises the model's errors, and StorageError where the answer cannot be counted."""
    length = 0
    async with UsageMeter(request, context) as taken, aclosing(context.llm.stream(request)) as stream:
        async for item in stream:
            match item:
                case TextDelta(text=text):
                    taken.parts.append(text)
                    length += len(text)
                case LlmFinished():
                    taken.finished = item
            if length > most_chars:
                break
    return "".join(taken.parts)


async def _count(finished: LlmFinished, context: RunContext) -> None:
    tokens = finished.prompt_tokens + finished.completion_tokens
    await context.budgets.spent(context.scope, tokens=tokens, cost=finished.cost)
