"""Ask a model that judges, and count the tokens as those of the person whose action or words it judges."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

from pipeline.domain.chat import estimate_tokens
from pipeline.domain.errors import ModelError, StorageError
from pipeline.llm.client import LlmClient, LlmFinished, LlmRequest, TextDelta
from pipeline.llm.failures import EmptyAnswer
from pipeline.runtime.ports import Budgets
from pipeline.runtime.scope import TurnScope

MOST_CHARS = 4_000
"""A longer answer is not read to its end: it is no answer in the form of a judgement."""


async def counted_answer(llm: LlmClient, budgets: Budgets, request: LlmRequest, scope: TurnScope) -> str:
    """The model's answer, whose use counts for the author of `scope`, also if it is cut off. Raises
    ModelError, and StorageError where the use cannot be counted."""
    parts: list[str] = []
    finished: LlmFinished | None = None
    try:
        async with aclosing(llm.stream(request)) as stream:
            async for item in stream:
                match item:
                    case TextDelta(text=text):
                        parts.append(text)
                    case LlmFinished():
                        finished = item
                if sum(map(len, parts)) > MOST_CHARS:
                    break
    except EmptyAnswer as error:
        await _count(error.finished, budgets, scope)
        raise
    except (ModelError, asyncio.CancelledError):
        if parts:
            with suppress(StorageError):
                await _count(_estimated(request, parts), budgets, scope)
        raise
    await _count(finished or _estimated(request, parts), budgets, scope)
    return "".join(parts)


async def _count(finished: LlmFinished, budgets: Budgets, scope: TurnScope) -> None:
    tokens = finished.prompt_tokens + finished.completion_tokens
    await budgets.spent(scope, tokens=tokens, cost=finished.cost)


def _estimated(request: LlmRequest, parts: list[str]) -> LlmFinished:
    """The use of a call whose end did not arrive."""
    return LlmFinished(
        finish_reason="cut",
        prompt_tokens=sum(message.tokens for message in request.messages),
        completion_tokens=estimate_tokens("".join(parts)),
    )
