"""The exchange of a turn without an answer, where the state knows nothing of its calls."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.agent.unfinished import NotedTools
from pipeline.domain.chat import ToolCall
from pipeline.graph.run.outcome import Effect, RunOutcome
from pipeline.runtime.null_services import NullTools
from pipeline.runtime.ports import ToolResult
from pipeline.runtime.scope import TurnScope
from tests.support.contexts import scope


class _Echo(NullTools):
    async def propose(self, call: ToolCall, _groups: Sequence[str], _scope: TurnScope) -> ToolResult:
        return ToolResult(content=f"did {call.arguments}")


def _outcome(*effects: Effect) -> RunOutcome:
    return RunOutcome(
        run_id="r", status="cancelled", stop_reason="aborted", quality="failed", state={}, effects=effects
    )


async def test_calls_of_task_nodes_are_kept_under_their_own_ids() -> None:
    tools = NotedTools(_Echo())
    for arguments in ("one", "two"):
        await tools.propose(ToolCall(id="t0_1_1", name="write", arguments=arguments), (), scope())
    asked, *results = tools.exchange(_outcome())
    assert [(call.id, call.arguments) for call in asked.tool_calls] == [
        ("t0_1_1", "one"),
        ("t0_1_1_2", "two"),
    ]
    assert [(result.tool_call_id, result.content) for result in results] == [
        ("t0_1_1", "did one"),
        ("t0_1_1_2", "did two"),
    ]


def test_a_turn_without_calls_has_no_exchange() -> None:
    assert NotedTools(NullTools()).exchange(None) == ()
    assert NotedTools(NullTools()).exchange(_outcome(Effect(key="judge 1", done=False))) == ()
