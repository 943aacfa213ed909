"""Summarise long conversations while their thread is idle.

The holder of the thread's lease runs a summary and cancels it when there is work: no turn waits for one, and
none changes a conversation during a turn. A conversation off the record is not summarised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.agents.agent_book import AgentModels
from gateway.storage.ports import Lease, Store
from gateway.turns.sessions import SessionState, write_summary
from pipeline.domain.clock import Clock
from pipeline.history.observation_summary import sum_up
from pipeline.history.summarization import ModelSummary
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.ports import Budgets
from pipeline.runtime.scope import TurnScope

QUIET_S = 2.0
"""Idle seconds before a summary begins, so that messages in bursts do not interrupt it."""
RETRY_AFTER_S = (600.0, 1_800.0, 3_600.0)
"""Seconds to the next try for a session whose model gave no answer."""


class Summaries:
    """Summarises one conversation at a time. Holds no conversation."""

    def __init__(
        self,
        *,
        store: Store,
        models: Callable[[str], AgentModels],
        budgets: Budgets,
        clock: Clock,
        redactor: Redactor | None = None,
    ) -> None:
        """`models` gives those of an agent by its recorded name."""
        self._store = store
        self._models = models
        self._redactor = redactor or Redactor()
        self._budgets = budgets
        self._clock = clock
        self._one = asyncio.Semaphore(1)

    def wanted(self, session: SessionState, more: int = 0) -> bool:
        """Whether the session, with `more` messages, needs a summary. Reads no history: the messages of one
        that no turn has needed are not counted."""
        return session.conversation.size + more > self._models(session.answered_by).summarise_above

    async def run(self, lease: Lease, session: SessionState, scope: TurnScope) -> None:
        """Summarise the session's beginning after the turn of `scope`, and store it under `lease`, unless
        it is short enough or the budget is used up. Raises ModelError and StorageError."""
        await self._clock.sleep(QUIET_S)
        async with self._one:
            await self._sum_up(lease, session, scope)

    async def _sum_up(self, lease: Lease, session: SessionState, scope: TurnScope) -> None:
        models = self._models(scope.agent)
        budget = await self._budgets.allowance(scope)
        if budget.model == "none":
            return
        conversation = await session.read()
        if conversation.size <= models.summarise_above:
            return

        async def spent(said: ModelSummary) -> None:
            await self._budgets.spent(scope, tokens=said.tokens, cost=said.cost)

        cheaper = models.cheaper if budget.model == "cheaper" else None
        summary = await sum_up(
            conversation,
            models.summarise_above,
            llm=cheaper or models.llm,
            clock=self._clock,
            timeout_s=models.llm_timeout_s,
            redactor=self._redactor,
            spent=spent,
        )
        if summary is not None:
            await write_summary(self._store, lease, session, summary, at=self._clock.now())
