"""What one answer of the model takes: counted in the turn's budget on every way out of it.

Not here: what a turn may take, and on which model, which is `Budgets.allowance`.
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
    """What has come of an answer; whoever reads the stream fills it in."""

    pieces: list[str] = field(default_factory=list)
    finished: LlmFinished | None = None


@asynccontextmanager
async def metered(request: LlmRequest, context: RunContext) -> AsyncIterator[Taken]:
    """`async with` it around the reading of one answer. One without an end is counted by estimate.

    Raises StorageError where an answer that has come cannot be counted.
    """
    taken = Taken()
    try:
        yield taken
    except EmptyAnswer as empty:
        await _count(empty.finished, context)
        raise
    except (ModelError, asyncio.CancelledError):
        # What was cut off is paid for, or whoever stops each answer in time would have them for nothing.
        if taken.pieces or taken.finished:
            with suppress(StorageError):
                await _count(taken.finished or _estimated(request, taken), context)
        raise
    await _count(taken.finished or _estimated(request, taken), context)


def _estimated(request: LlmRequest, taken: Taken) -> LlmFinished:
    return LlmFinished(
        finish_reason="cut",
        prompt_tokens=sum(message.tokens for message in request.messages),
        completion_tokens=estimate_tokens("".join(taken.pieces)),
    )


async def _count(finished: LlmFinished, context: RunContext) -> None:
    tokens = finished.prompt_tokens + finished.completion_tokens
    await context.budgets.spent(context.scope, tokens=tokens, cost=finished.cost)
