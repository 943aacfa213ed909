"""Ask the evaluator's model, and count the tokens as the author's of the action."""

from __future__ import annotations

from typing import Final

from pipeline.domain.chat import ChatMessage
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.llm.client import LlmClient, LlmRequest
from pipeline.runtime.counted_answer import counted_answer
from pipeline.runtime.ports import Budgets
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.shield.evaluator_prompt import ANSWER
from pipeline.shield.proposal import Proposal

_MOST_TOKENS: Final = 2_000
"""What a reasoning model thinks counts too."""


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
        scope = TurnScope(
            session_id=proposal.session_id,
            message_id=proposal.message_id,
            thread=ThreadKey.decode(proposal.thread),
            author=Author(id=proposal.person),
            send=ignore_event,
            private=proposal.private,
            agent=proposal.agent,
        )
        return await counted_answer(self._llm, self._budgets, request, scope)
