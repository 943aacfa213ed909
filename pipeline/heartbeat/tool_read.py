"""One call of a tool outside a conversation, judged by the gate as every call is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import Clock
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import END, EdgeSpec, GraphSpec, NodeSpec, OnSuccess
from pipeline.graph.execution.executor import Executor
from pipeline.runtime.ports import ToolGate, ToolResult
from pipeline.runtime.scope import TurnScope

_CALL_ID: Final = "watched"


async def read_by_tool(
    tools: ToolGate, name: str, arguments: str, groups: Sequence[str], scope: TurnScope, clock: Clock
) -> ToolResult:
    """What the tool returns for the scope's person; `arguments` are JSON. The caller makes sure that it only
    reads. Raises the errors of a run."""
    found: list[ToolResult] = []

    async def call(_state: State, _context: None) -> NodeResult:
        asked = ToolCall(id=_CALL_ID, name=name, arguments=arguments)
        found.append(await tools.propose(asked, groups, scope))
        return NodeResult()

    graph: GraphSpec[Any] = GraphSpec(
        name="watched_tool",
        entry="call",
        nodes={"call": NodeSpec(run=call, writes=(), retry=RetryPolicy(max_attempts=1))},
        edges=(EdgeSpec(source="call", target=END, when=OnSuccess()),),
    )
    outcome = await Executor(graph, clock=clock).run({}, None)
    outcome.raise_for_failure()
    return found[-1]
