"""Count the tokens and cost of one answer of the model in the turn's budget, however the answer ends.

Not here: how much a turn may use, and on which model; `Budgets.allowance` decides that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from pipeline.domain.chat import estimate_tokens
from pipeline.domain.errors import ModelError, StorageError
from pipeline.llm.client import LlmFinished, LlmRequest
from pipeline.llm.failures import EmptyAnswer
from pipeline.runtime.context import RunContext


@dataclass(slots=True, kw_only=True)
class Taken:
    """What has arrived of an answer; the reader of the stream fills it in."""

    parts: list[str] = field(default_factory=list)
    finished: LlmFinished | None = None


@asynccontextmanager
async def metered(request: LlmRequest, context: RunContext) -> AsyncIterator[Taken]:
    """Use with `async with` around the reading of one answer. An answer without an end is estimated.

    Raises StorageError where an answer that has arrived cannot be counted.
    """
    taken = Taken()
    try:
        yield taken
    except EmptyAnswer as empty:
        await _count(empty.finished, context)
        raise
    except (ModelError, asyncio.CancelledError):
        # A cancelled answer counts too, or a user who stops each answer just before its end pays nothing.
        if taken.parts or taken.finished:
            with suppress(StorageError):
                await _count(taken.finished or _estimated(request, taken), context)
        raise
    await _count(taken.finished or _estimated(request, taken), context)


def _estimated(request: LlmRequest, taken: Taken) -> LlmFinished:
    return LlmFinished(
        finish_reason="cut",
        prompt_tokens=sum(message.tokens for message in request.messages),
        completion_tokens=estimate_tokens("".join(taken.parts)),
    )


async def _count(finished: LlmFinished, context: RunContext) -> None:
    tokens = finished.prompt_tokens + finished.completion_tokens
    await context.budgets.spent(context.scope, tokens=tokens, cost=finished.cost)
