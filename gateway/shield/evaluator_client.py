"""Ask the evaluator's model, and count the tokens as the author's of the action."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Final

from pipeline.domain.chat import ChatMessage, estimate_tokens
from pipeline.domain.errors import ModelError, StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.llm.client import LlmClient, LlmFinished, LlmRequest, TextDelta
from pipeline.llm.failures import EmptyAnswer
from pipeline.runtime.ports import Budgets
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.shield.evaluator_prompt import ANSWER
from pipeline.shield.proposal import Proposal

_MOST_TOKENS: Final = 2_000
"""What a reasoning model thinks counts too. (seed 4: 500)"""
_MOST_CHARS: Final = 4_000
"""A longer answer is not read to its end: it is no answer in the form that counts."""


class EvaluatorClient:
    """Implements EvaluatorModel over a language model. `timeout_s` is for its first word."""

    def __init__(self, llm: LlmClient, budgets: Budgets, *, timeout_s: float) -> None:
        self._llm = llm
        self._budgets = budgets
        self._timeout_s = timeout_s

    async def answer(self, instructions: str, question: str, proposal: Proposal) -> str:
        """See `EvaluatorModel.answer`."""
        request = LlmRequest(
            messages=(
                ChatMessage(role="system", content=instructions),
                ChatMessage(role="user", content=question),
            ),
            schema=ANSWER,
            max_tokens=_MOST_TOKENS,
            temperature=0.0,
            timeout_s=self._timeout_s,
        )
        parts: list[str] = []
        finished: LlmFinished | None = None
        try:
            async with aclosing(self._llm.stream(request)) as stream:
                async for item in stream:
                    match item:
                        case TextDelta(text=text):
                            parts.append(text)
                        case LlmFinished():
                            finished = item
                    if sum(map(len, parts)) > _MOST_CHARS:
                        break
        except EmptyAnswer as error:
            await self._count(error.finished, proposal)
            raise
        except (ModelError, asyncio.CancelledError):
            if parts:
                with suppress(StorageError):
                    await self._count(_estimated(request, parts), proposal)
            raise
        await self._count(finished or _estimated(request, parts), proposal)
        return "".join(parts)

    async def _count(self, finished: LlmFinished, proposal: Proposal) -> None:
        scope = TurnScope(
            session_id=proposal.session_id,
            message_id=proposal.message_id,
            thread=ThreadKey.decode(proposal.thread),
            author=Author(id=proposal.person),
            send=ignore_event,
            private=proposal.private,
            agent=proposal.agent,
        )
        tokens = finished.prompt_tokens + finished.completion_tokens
        await self._budgets.spent(scope, tokens=tokens, cost=finished.cost)


def _estimated(request: LlmRequest, parts: list[str]) -> LlmFinished:
    """The use of a call whose end did not arrive."""
    return LlmFinished(
        finish_reason="cut",
        prompt_tokens=sum(message.tokens for message in request.messages),
        completion_tokens=estimate_tokens("".join(parts)),
    )
