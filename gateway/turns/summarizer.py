"""Summarise long conversations while their thread is idle.

The holder of the thread's lease runs a summary and cancels it when there is work: no turn waits for one, and
none changes a conversation during a turn. A conversation off the record is not summarised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from gateway.agents.agent_book import AgentModels
from gateway.storage.ports import InboxEntry, Lease, Store
from gateway.turns.sessions import SessionState, write_summary
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.history.cooldown import Cooldown
from pipeline.history.observation_summary import sum_up
from pipeline.history.summarization import Said
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.ports import Budgets
from pipeline.runtime.scope import TurnScope, ignore_event

_log = logging.getLogger(__name__)

QUIET_S = 2.0
"""Idle seconds before a summary begins, so that messages in bursts do not interrupt it."""
COOL_DOWN_S = 600.0
"""Seconds between two tries for a session whose model gave no answer."""


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
        self._cooling = Cooldown(COOL_DOWN_S)

    def wanted(self, session: SessionState) -> bool:
        """Whether the session needs a summary now."""
        if (
            session.mode == "otr"
            or session.conversation.size <= self._models(session.answered_by).summarise_above
        ):
            return False
        return self._cooling.is_over(session.session_id, self._clock)

    async def run(self, lease: Lease, session: SessionState, entry: InboxEntry) -> None:
        """Summarise the session's beginning after the turn of `entry`, and store it under `lease`. Errors are
        logged and leave the conversation unchanged."""
        await self._clock.sleep(QUIET_S)
        async with self._one:
            try:
                await self._sum_up(lease, session, entry)
            except (ModelError, StorageError) as error:
                self._cooling.begin(session.session_id, self._clock)
                _log.warning("a conversation could not be summed up", extra={"reason": str(error)})
            except Exception:  # noqa: BLE001 - an immediate retry would loop for ever
                self._cooling.begin(session.session_id, self._clock)
                _log.exception("a conversation could not be summed up")

    async def _sum_up(self, lease: Lease, session: SessionState, entry: InboxEntry) -> None:
        scope = scope_after(session, entry)
        budget = await self._budgets.allowance(scope)
        if budget.model == "none":
            self._cooling.begin(session.session_id, self._clock)
            return

        async def spent(said: Said) -> None:
            await self._budgets.spent(scope, tokens=said.tokens, cost=said.cost)

        models = self._models(session.answered_by)
        cheaper = models.cheaper if budget.model == "cheaper" else None
        summary = await sum_up(
            session.conversation,
            models.summarise_above,
            llm=cheaper or models.llm,
            clock=self._clock,
            timeout_s=models.llm_timeout_s,
            redactor=self._redactor,
            spent=spent,
        )
        if summary is not None:
            await write_summary(self._store, lease, session, summary, at=self._clock.now())


def scope_after(session: SessionState, entry: InboxEntry) -> TurnScope:
    """The scope of work after the turn of `entry`, on its author's budget."""
    return TurnScope(
        session_id=session.session_id,
        message_id=entry.message_id,
        thread=ThreadKey.decode(entry.thread),
        author=Author(id=entry.item.author.id),
        send=ignore_event,
        private=entry.item.private,
        mode=session.mode,
        agent=session.answered_by,
    )
