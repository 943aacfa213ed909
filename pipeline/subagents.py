"""Sub-agents: up to ten concurrent agents, each with a separate task, conversation and tools.

A sub-agent is a run of the conversation's agent and act nodes inside one tool call. It cannot start
sub-agents, its calls pass the same gate, and its parent's budget pays for it. It is not recorded separately:
after a crash in the middle the result of the whole call is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, ParlourError, StorageError, TurnFailed
from pipeline.domain.events import (
    ActionStarted,
    ApprovalRequired,
    ApprovalResolved,
    OtrBlocked,
    PipelineEvent,
    SubAgentCancelled,
    SubAgentCompleted,
    SubAgentFailed,
    SubAgentProgress,
    SubAgentSpawned,
)
from pipeline.domain.frozen import dataclass
from pipeline.domain.tool_words import using
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import RunOutcome
from pipeline.llm.client import LlmClient
from pipeline.runtime.context import RunContext, ignore_text
from pipeline.runtime.null_services import KnownHistory, NullFacts, NullSkills
from pipeline.runtime.scope import TurnScope
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings
from pipeline.tools.registry import ToolRegistry
from pipeline.tools.tool import Tool, ToolFailed, ToolOutput, tool_schema
from pipeline.topologies import sub_agent_graph

MAX_AGENTS: Final = 10
"""Per call."""
MAX_ROUNDS: Final = 20
"""Per sub-agent."""
MAX_SECONDS: Final = 900.0
"""Per sub-agent, including the time that a person takes to allow its tools. The turn's deadline is
paused meanwhile."""
PROGRESS_S: Final = 3.0
"""Minimum time between two progress events of one sub-agent."""
_MAX_NAME_CHARS = 40
_MAX_TASK_CHARS = 8_000
_REPORT_CHARS = 4_500
"""Length of all reports together: the gate shows the model 5,000 characters of a result."""
_SHOWN_CHARS = 200
"""Length of a task or a result in events for people."""
_FOREVER_S = 86_400.0

_ROLE = (
    "You are a sub-agent called {name}. Another assistant has given you one task. Work on it by yourself:"
    " no one can answer questions. End with a short report of what you found out or did."
)
_SCHEMA = tool_schema(
    {
        "agents": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_AGENTS,
            "items": tool_schema(
                {
                    "name": {"type": "string", "minLength": 1, "maxLength": _MAX_NAME_CHARS},
                    "task": {"type": "string", "minLength": 1, "maxLength": _MAX_TASK_CHARS},
                },
                {"groups": {"type": "array", "items": {"type": "string"}, "maxItems": 20}},
            ),
        }
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """The request for one sub-agent."""

    name: str
    task: str
    groups: tuple[str, ...]


class SubAgents:
    """The tool group `agents`.

    `services` returns the services of turns, including the gate, and `registry` the gate's groups. Both hold
    this group, so they are called only when it is used.
    """

    name = "agents"
    description = "Let sub-agents work on parts of a task side by side."

    def __init__(
        self,
        *,
        llm: LlmClient,
        services: Callable[[], PipelineServices],
        registry: Callable[[], ToolRegistry],
        clock: Clock,
        settings: PipelineSettings,
    ) -> None:
        self._llm = llm
        self._services = services
        self._registry = registry
        self._clock = clock
        self._settings = replace(settings, max_rounds=MAX_ROUNDS)
        self._executor = Executor(sub_agent_graph(), clock=clock)
        self._tool = Tool(
            definition=ToolDefinition(
                name="run_agents",
                description=(
                    "Start 1 to 10 sub-agents side by side and wait for all their reports. Each gets only the"
                    " task that you write, so say everything in it, and the tool groups that you name."
                ),
                parameters=_SCHEMA,
            ),
            group=self.name,
            run=self._run,
            # It does nothing by itself: the gate checks each call of its agents.
            own_only=True,
            delegates=True,
            timeout_s=_FOREVER_S,
            describe=_described,
        )

    async def tools(self, _scope: TurnScope) -> tuple[Tool, ...]:
        """The only tool, `run_agents`."""
        return (self._tool,)

    async def close(self) -> None:
        """Do nothing: sub-agents end with the call that started them."""

    async def _run(self, arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        """Run all sub-agents, and return their reports in the order of the requests."""
        if scope.depth > 0:
            raise ToolFailed("a sub-agent cannot start sub-agents")
        orders = _orders(arguments)
        files = len(scope.files)
        try:
            # The parent's deadline is shorter than theirs, and would end them without any report.
            async with scope.delegating(), asyncio.TaskGroup() as group:
                running = [group.create_task(self._run_one(order, scope)) for order in orders]
        except ExceptionGroup as failed:
            # The gate distinguishes the errors and propagates a StorageError.
            broken, others = failed.split(StorageError)
            raise (broken or others or failed).exceptions[0] from None
        reports = [task.result() for task in running]
        share = _REPORT_CHARS // len(orders)
        text = "\n\n".join(
            f"## {order.name}: {'completed' if done else 'failed'}\n{_cut(words, share)}"
            for order, (done, words) in zip(orders, reports, strict=True)
        )
        foreign = ", ".join(scope.foreign.sources)
        done = any(done for done, _ in reports)
        return ToolOutput(text=text, success=done, foreign=foreign, stored=scope.files.since(files))

    async def _run_one(self, order: _Order, scope: TurnScope) -> tuple[bool, str]:
        """Run one sub-agent: whether it succeeded, and its report or the reason."""
        ids = {"session_id": scope.session_id, "message_id": scope.message_id}
        await scope.send(SubAgentSpawned(**ids, name=order.name, task=_line(order.task)))
        deadline = self._clock.timeout(MAX_SECONDS)
        try:
            async with deadline:
                words = await self._report(order, scope)
        except asyncio.CancelledError:
            await scope.send(SubAgentCancelled(**ids, name=order.name))
            raise
        except StorageError:
            raise
        except TimeoutError:
            words = f"It took longer than {MAX_SECONDS / 60:.0f} minutes and was stopped."
        except (ToolFailed, TurnFailed, ModelError) as error:
            words = str(error)
        except ParlourError as error:
            words = f"It could not continue: {error}"
        else:
            await scope.send(SubAgentCompleted(**ids, name=order.name, result=_line(words)))
            return True, words
        await scope.send(SubAgentFailed(**ids, name=order.name, reason=_line(words)))
        return False, words

    async def _report(self, order: _Order, scope: TurnScope) -> str:
        services = self._services()
        reporter = _Reporter(order.name, scope, self._clock)
        own = replace(scope, depth=scope.depth + 1, groups=order.groups, send=reporter.send)
        for name in order.groups:
            await self._registry().load(name, own)
        allowance = await services.budgets.allowance(own)
        if allowance.model == "none":
            raise TurnFailed("budget", allowance.words, recoverable=False)
        cheaper = services.cheaper if allowance.model == "cheaper" else None
        role = f"{self._settings.system_prompt}\n\n{_ROLE.format(name=order.name)}"
        context = RunContext(
            text=order.task,
            speech=None,
            history=KnownHistory(),
            scope=own,
            llm=cheaper or self._llm,
            tools=services.tools,
            skills=NullSkills(),
            workspace=services.workspace,
            facts=NullFacts(),
            budgets=services.budgets,
            clock=self._clock,
            settings=replace(self._settings, system_prompt=role),
            # The report goes to the parent.
            on_text=ignore_text,
            redactor=services.redactor,
        )
        return _report_of(await self._executor.run({}, context))


class _Reporter:
    """Forwards some of a sub-agent's events to the clients of its parent's turn."""

    def __init__(self, name: str, scope: TurnScope, clock: Clock) -> None:
        self._name = name
        self._scope = scope
        self._clock = clock
        self._not_before = clock.monotonic()

    async def send(self, event: PipelineEvent) -> None:
        """Forward questions under the sub-agent's name, and tool calls as occasional progress only."""
        match event:
            case ApprovalRequired():
                words = f"{self._name}: {event.tool_name}"
                await self._scope.send(replace(event, tool_name=words))
            case ApprovalResolved() | OtrBlocked():
                await self._scope.send(event)
            case ActionStarted() if self._clock.monotonic() >= self._not_before:
                self._not_before = self._clock.monotonic() + PROGRESS_S
                status = _line(event.summary or using(event.tool_name))
                await self._scope.send(
                    SubAgentProgress(
                        session_id=event.session_id,
                        message_id=event.message_id,
                        name=self._name,
                        status=status,
                    )
                )
            case _:
                return


def _orders(arguments: Mapping[str, Any]) -> tuple[_Order, ...]:
    """The requested sub-agents with unique names. Raises ToolFailed for none or too many."""
    asked: Sequence[Mapping[str, Any]] = arguments["agents"]
    if not 1 <= len(asked) <= MAX_AGENTS:
        raise ToolFailed(f"1 to {MAX_AGENTS} sub-agents can run side by side, not {len(asked)}")
    orders: list[_Order] = []
    for one in asked:
        name = wanted = " ".join(str(one["name"]).split()) or "agent"
        taken = {order.name for order in orders}
        number = 2
        while name in taken:
            name, number = f"{wanted} {number}", number + 1
        orders.append(_Order(name=name, task=one["task"], groups=tuple(dict.fromkeys(one.get("groups", ())))))
    return tuple(orders)


def _report_of(outcome: RunOutcome) -> str:
    if outcome.stop_reason in ("max_loops", "max_steps"):
        raise TurnFailed(outcome.stop_reason, "It went round in circles and was stopped.")
    outcome.raise_for_failure()
    answer = outcome.state.get("agent", {}).get("answer")
    return answer if isinstance(answer, str) and answer else "It ended without a word."


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars]} …(cut)"


def _described(arguments: Mapping[str, Any]) -> str:
    return _line(", ".join(order.name for order in _orders(arguments)))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
