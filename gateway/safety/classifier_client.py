"""Ask the model of the crisis classifier, and count the tokens as the author's of the message."""

from __future__ import annotations

from typing import Final

from pipeline.domain.chat import ChatMessage
from pipeline.llm.client import LlmClient, LlmRequest
from pipeline.runtime.counted_answer import counted_answer
from pipeline.runtime.ports import Budgets
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.safety.classifier import ANSWER, Asked

_MOST_TOKENS: Final = 1_000
"""What a reasoning model thinks counts too."""


class ClassifierClient:
    """Implements ClassifierModel over a language model. `timeout_s` is for its first word."""

    def __init__(self, llm: LlmClient, budgets: Budgets, *, timeout_s: float) -> None:
        self._llm = llm
        self._budgets = budgets
        self._timeout_s = timeout_s

    async def answer(self, instructions: str, question: str, asked: Asked) -> str | None:
        """See `ClassifierModel.answer`."""
        scope = TurnScope(
            session_id=asked.session_id,
            message_id=asked.message_id,
            thread=asked.thread,
            author=asked.author,
            send=ignore_event,
            person=asked.person,
            private=asked.private,
            mode="otr" if asked.off_record else "normal",
            agent=asked.agent,
        )
        if (await self._budgets.allowance(scope)).model == "none":
            return None
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
        return await counted_answer(self._llm, self._budgets, request, scope)
