"""Which model answers a turn: the agent's own, or the cheaper one, as far as the budget allows."""

from __future__ import annotations

from pipeline.llm.client import LlmClient
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.services import PipelineServices
from pipeline.turn import Turn
from pipeline.turn_words import spent

_MAX_NOTIFIED = 10_000
"""Sessions that are remembered; a repeated notice is better than unbounded memory."""


class TurnModels:
    """The models of one agent."""

    def __init__(self, llm: LlmClient, services: PipelineServices) -> None:
        self._llm = llm
        self._services = services
        self._notified: set[str] = set()
        """Sessions that were notified of the cheaper model."""

    async def affordable(self, turn: Turn, scope: TurnScope) -> LlmClient:
        """The model that the budget allows; the turn's answer says once if it is the cheaper one. Raises
        TurnFailed if it allows none."""
        allowance = await self._services.budgets.allowance(scope)
        if allowance.model == "none":
            raise spent(allowance)
        cheaper = self._services.cheaper if allowance.model == "cheaper" else None
        session, words = turn.journal.session_id, "" if cheaper is None else allowance.words
        if not words:
            self._notified.discard(session)
        elif session not in self._notified:
            if len(self._notified) >= _MAX_NOTIFIED:
                self._notified.clear()
            self._notified.add(session)
            turn.cheaper = words
        return cheaper or self._llm
