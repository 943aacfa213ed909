"""Run the graph of a heartbeat as its person, without one to ask; the host commits what comes of it.

A heartbeat's failure is a result: no one waits for its answer. Not here: when it runs, and who reads it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Literal

from pipeline.agent.model_messages import exchanged
from pipeline.agent.unfinished import has_acted
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, ParlourError, StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import HeartbeatDue, InboundMessage
from pipeline.graph.definition.ports import RunLog
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import RunOutcome
from pipeline.graph.run.records import GraphChanged, RawRecord, RunEnded, RunUnreadable
from pipeline.heartbeat.graph import HEARTBEAT, WAKE, Agents, heartbeat_graph
from pipeline.llm.client import LlmClient
from pipeline.runtime.context import RunContext
from pipeline.runtime.ports import TurnSession, UserWords
from pipeline.runtime.safe_log import SafeRunLog
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.stopping import TurnHalted
from pipeline.turn_contexts import TurnContexts

_log = logging.getLogger(__name__)

MAX_SECONDS: Final = 900.0
"""Of one heartbeat, all its cycles together."""
_TOO_LONG = f"it took longer than {MAX_SECONDS / 60:.0f} minutes"
_NO_BUDGET = "the budget of its person is used up"
_CHANGED = "the gateway has changed since it began, and it had already begun an action"
_INTERNAL = "something went wrong inside the assistant"

Status = Literal["done", "blocked", "running", "stopped", "failed"]
"""`running`: it had ten cycles and was not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResult:
    """How a heartbeat ended."""

    status: Status
    said: str = ""
    """What it tells its person; empty for nothing."""
    summary: str = ""
    """For the next heartbeat."""
    blocker: str = ""
    cycles: int = 0
    problem: str = ""
    """Why it failed, in words for people."""
    foreign: str = ""
    """A source of foreign text that it has read; empty for none."""
    unasked: tuple[str, ...] = ()
    """What it has not done because no one could be asked, a sentence each."""


class HeartbeatRuns:
    """The heartbeats of one agent."""

    def __init__(
        self,
        *,
        services: PipelineServices,
        settings: PipelineSettings,
        llm: LlmClient,
        agent: str,
        clock: Clock,
        agents: Agents,
    ) -> None:
        """`agent` is empty for the default one; `agents` returns the agents of the gateway, one line each."""
        # Neither counts against a heartbeat: it is no message that a person sends.
        settings = replace(settings, spam="answer", too_fast="answer")
        self._contexts = TurnContexts(services=services, settings=settings, clock=clock)
        self._llm = llm
        self._agent = agent
        self._agents = agents
        self._clock = clock

    @cached_property
    def _executor(self) -> Executor[RunContext]:
        # Most gateways have no heartbeat.
        return Executor(heartbeat_graph(self._agents), clock=self._clock)

    async def run(
        self,
        due: HeartbeatDue,
        session: TurnSession,
        known: Mapping[str, Any],
        records: Sequence[RawRecord],
        log: RunLog,
        control: RunControl,
    ) -> HeartbeatResult:
        """Run the heartbeat, or resume the one in `records`. `known` has `summary` and `blocker` of the last
        one. Raises StorageError and TurnHalted: then it is not over."""
        message = _as_message(due)
        scope = self._scope(due, session)
        deadline = self._clock.timeout(MAX_SECONDS)
        try:
            async with deadline:
                llm = await self._affordable(scope)
                if llm is None:
                    return HeartbeatResult(status="failed", problem=_NO_BUDGET)
                context = self._context(message, session, scope, llm)
                outcome = await self._outcome(due, context, known, records, log, control)
        except TimeoutError:
            if not deadline.expired():
                raise
            return HeartbeatResult(status="failed", problem=_TOO_LONG)
        if outcome is None:
            return HeartbeatResult(status="failed", problem=_CHANGED)
        return self._result(outcome, scope)

    async def _affordable(self, scope: TurnScope) -> LlmClient | None:
        services = self._contexts.services
        model = (await services.budgets.allowance(scope)).model
        if model == "none":
            return None
        return (services.cheaper or self._llm) if model == "cheaper" else self._llm

    def _scope(self, due: HeartbeatDue, session: TurnSession) -> TurnScope:
        scope = TurnScope(
            session_id=session.session_id,
            message_id=due.message_id,
            thread=due.thread,
            author=due.author,
            person=self._contexts.services.person_of(due.thread, due.author.id),
            private=due.private,
            agent=self._agent,
            unattended=True,
            send=ignore_event,
        )
        for source in due.sources:
            scope.foreign.note(source)
        return scope

    def _context(
        self, message: InboundMessage, session: TurnSession, scope: TurnScope, llm: LlmClient
    ) -> RunContext:
        contexts, words = self._contexts, UserWords(text=message.text)
        reads = contexts.reads(message, session, scope, words)
        tools = contexts.services.tools
        return contexts.context(message, session, words, reads, llm=llm, tools=tools)

    async def _outcome(
        self,
        due: HeartbeatDue,
        context: RunContext,
        known: Mapping[str, Any],
        records: Sequence[RawRecord],
        log: RunLog,
        control: RunControl,
    ) -> RunOutcome | None:
        """None for a recorded run that can neither be resumed nor begin again."""
        safe = SafeRunLog(log, context.redactor, frozenset())
        if records:
            try:
                context.scope.foreign.read(exchanged(self._executor.state_of(records)))
                return await self._executor.resume(records, context, log=safe, control=control)
            except (GraphChanged, RunUnreadable, RunEnded) as error:
                _log.warning("a heartbeat cannot be resumed", extra={"code": error.code})
                if has_acted(records):
                    return None
        inputs = {
            WAKE: {
                "sources": list(due.sources),
                "instructions": due.instructions,
                "projects": list(due.projects),
                "tasks": list(due.tasks),
                "zone": due.zone,
                "whom": due.author.name or "the user",
            },
            HEARTBEAT: {
                "status": "running",
                "cycle": 0,
                "summary": str(known.get("summary", "")),
                "blocker": str(known.get("blocker", "")),
                "said": "",
            },
        }
        return await self._executor.run(inputs, context, log=safe, control=control)

    def _result(self, outcome: RunOutcome, scope: TurnScope) -> HeartbeatResult:
        if outcome.stop_reason == "pause_requested":
            raise TurnHalted
        known = outcome.state.get(HEARTBEAT, {})
        cycles, foreign = int(known.get("cycle", 0)), next(iter(scope.foreign.sources), "")
        try:
            outcome.raise_for_failure()
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - no one waits for it: the notice reports it
            problem = str(error) if isinstance(error, ParlourError | ModelError) else _INTERNAL
            _log.warning("a heartbeat failed", extra={"reason": problem}, exc_info=problem == _INTERNAL)
            return HeartbeatResult(
                status="failed",
                problem=problem,
                summary=str(known.get("summary", "")),
                blocker=str(known.get("blocker", "")),
                cycles=cycles,
                foreign=foreign,
            )
        return HeartbeatResult(
            status=known["status"],
            said=str(known["said"]),
            summary=str(known["summary"]),
            blocker=str(known["blocker"]),
            cycles=cycles,
            foreign=foreign,
            unasked=tuple(dict.fromkeys(known.get("unasked", ()))),
        )


def _as_message(due: HeartbeatDue) -> InboundMessage:
    return InboundMessage(
        message_id=due.message_id,
        native_id=due.native_id,
        thread=due.thread,
        author=due.author,
        received_at=due.received_at,
        text=due.text,
        private=due.private,
    )
