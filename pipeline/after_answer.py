"""Run the nodes of a turn's graph that come after its answer, as later work of the host.

Nothing here is shown to a person. What fails here fails no turn: the host tries again or gives up.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.agent.metered_ask import metered_ask
from pipeline.domain.clock import Clock
from pipeline.domain.messages import InboundMessage
from pipeline.graph.definition.ports import RunLog
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import RunOutcome
from pipeline.graph.run.records import GraphChanged, RawRecord, RunEnded, RunUnreadable
from pipeline.llm.client import LlmClient
from pipeline.runtime.context import RunContext
from pipeline.runtime.ports import TurnSession, UserWords
from pipeline.runtime.safe_log import SafeRunLog
from pipeline.runtime.workflow_context import AgentMemory
from pipeline.turn_contexts import TurnContexts

if TYPE_CHECKING:
    # Only an agent with a memory needs them.
    from pipeline.memory.sessions.ended import EndedSession
    from pipeline.memory.sessions.ending import SessionEnd

_log = logging.getLogger(__name__)


class AfterAnswer:
    """The rest of the runs of one agent."""

    def __init__(
        self,
        executor: Executor[RunContext],
        contexts: TurnContexts,
        *,
        llm: LlmClient,
        memory: AgentMemory,
        agent: str,
        clock: Clock,
    ) -> None:
        self._executor = executor
        self._contexts = contexts
        self._llm = contexts.services.cheaper or llm
        self._memory = memory
        self._agent = agent
        self._clock = clock

    async def run(
        self,
        message: InboundMessage,
        words: UserWords,
        session: TurnSession,
        records: Sequence[RawRecord],
        log: RunLog,
    ) -> RunOutcome | None:
        """Continue the run in `records`, of the turn that answered `message` with these `words`;
        `session` is that of the turn, as it was before it. None if there is nothing left of the run that
        can continue. Raises StorageError where the log fails."""
        context = self._context(message, words, session)
        redactor = context.redactor
        try:
            outcome = await self._executor.resume(
                records, context, log=SafeRunLog(log, redactor, self._memory.unrecorded)
            )
        except (GraphChanged, RunUnreadable, RunEnded) as error:
            _log.info("the rest of a run is left out", extra={"code": error.code})
            return None
        if outcome.error is not None:
            _log.warning(
                "what comes after an answer failed",
                extra={"node": outcome.error.node, "code": outcome.error.code},
                exc_info=outcome.error.exception,
            )
        return outcome

    async def end(self, last: InboundMessage, ended: EndedSession, session: TurnSession) -> SessionEnd:
        """Write what a session that is over leaves in the memory, once. `last` is a message of its person,
        whose memory it is. Raises StorageError."""
        from pipeline.memory.sessions.ending import end_session  # noqa: PLC0415 - see above
        from pipeline.memory.sessions.summary import ARC_SCHEMA, MAX_TOKENS  # noqa: PLC0415 - see above

        context = self._context(last, UserWords(text=last.text), session)
        flow = self._memory.context(self._llm, session.mode)
        return await end_session(
            flow.memory_store,
            context.scope.owner,
            ended,
            ask=metered_ask(context, ARC_SCHEMA, max_tokens=MAX_TOKENS),
            clock=self._clock,
            redactor=context.redactor,
        )

    def _context(self, message: InboundMessage, words: UserWords, session: TurnSession) -> RunContext:
        """The context of work after the answer to `message`."""
        return self._contexts.outside_turn(
            message,
            session,
            words,
            llm=self._llm,
            agent=self._agent,
            workflow=self._memory.context(self._llm, session.mode),
        )
