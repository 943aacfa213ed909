"""The loop: decisions, edges, limits, and exactly one completion signal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.domain.errors import GraphError
from pipeline.graph.decisions import Continue, End, Goto, Next, Node, NodeDecision, NodeResult, State
from pipeline.graph.executor import Executor, RunOutcome
from pipeline.graph.spec import END, EdgeSpec, GraphSpec, Limits, Route, When


class Recorder:
    """A RunObserver that writes everything down."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str | None]] = []
        self.started: list[str] = []
        self.outcomes: list[RunOutcome] = []

    async def node_started(self, node: str) -> None:
        self.started.append(node)

    async def node_completed(
        self, node: str, decision: NodeDecision, update: Mapping[str, Any], next_node: str | None
    ) -> None:
        self.steps.append((node, next_node))

    async def run_completed(self, outcome: RunOutcome) -> None:
        self.outcomes.append(outcome)


def _adds(key: str, decision: NodeDecision | None = None) -> Node[None]:
    async def node(state: State, _context: None) -> NodeResult:
        return NodeResult(update={key: state.get(key, 0) + 1}, decision=decision or Next())

    return node


async def _run(graph: GraphSpec[None], state: State | None = None, start: str | None = None) -> Recorder:
    recorder = Recorder()
    await Executor(graph).run(state or {}, None, recorder, start=start)
    return recorder


async def test_static_edges_are_followed_to_the_end() -> None:
    graph = GraphSpec(
        name="g",
        entry="a",
        nodes={"a": _adds("x"), "b": _adds("x")},
        edges=(EdgeSpec(source="a", target="b"), EdgeSpec(source="b", target=END)),
    )
    recorder = await _run(graph)
    assert recorder.steps == [("a", "b"), ("b", None)]
    assert recorder.outcomes[0].state == {"x": 2}
    assert recorder.outcomes[0].path == ("a", "b")


async def test_the_first_condition_that_holds_wins_and_always_comes_last() -> None:
    graph = GraphSpec(
        name="g",
        entry="a",
        nodes={"a": _adds("x"), "big": _adds("b"), "small": _adds("s"), "other": _adds("o")},
        edges=(
            EdgeSpec(source="a", target="other"),
            EdgeSpec(source="a", target="big", when=When(lambda state: state["x"] > 10)),
            EdgeSpec(source="a", target="small", when=When(lambda state: state["x"] > 1)),
        ),
    )
    assert (await _run(graph, {"x": 20})).started == ["a", "big"]
    assert (await _run(graph, {"x": 5})).started == ["a", "small"]
    assert (await _run(graph, {"x": 0})).started == ["a", "other"]


async def test_a_jump_overrides_the_edges() -> None:
    graph = GraphSpec(
        name="g",
        entry="a",
        nodes={"a": _adds("x", Goto("c")), "b": _adds("x"), "c": _adds("x", End())},
        edges=(EdgeSpec(source="a", target="b"), EdgeSpec(source="b", target="c")),
    )
    assert (await _run(graph)).started == ["a", "c"]


async def test_a_jump_to_nowhere_fails_the_run_by_name() -> None:
    graph = GraphSpec(name="g", entry="a", nodes={"a": _adds("x", Goto("ghost"))}, edges=())
    with pytest.raises(GraphError, match="node a jumps to ghost"):
        await _run(graph)


async def test_a_route_to_an_undeclared_target_fails_closed() -> None:
    route = Route(choose=lambda _: "b", targets=(END,))
    graph = GraphSpec(name="g", entry="a", nodes={"a": _adds("x")}, edges=(EdgeSpec(source="a", when=route),))
    with pytest.raises(GraphError, match="chose b"):
        await _run(graph)


async def test_a_node_without_edges_ends_the_run() -> None:
    graph = GraphSpec(name="g", entry="a", nodes={"a": _adds("x")}, edges=())
    assert (await _run(graph)).outcomes[0].stop_reason == "completed"


async def test_the_same_node_runs_forty_times_in_a_row_and_not_once_more() -> None:
    graph = GraphSpec(
        name="g",
        entry="first",
        nodes={"first": _adds("f"), "agent": _adds("x", Continue())},
        edges=(EdgeSpec(source="first", target="agent"),),
    )
    outcome = (await _run(graph)).outcomes[0]
    assert outcome.stop_reason == "max_loops"
    assert outcome.state["x"] == 40


async def test_two_nodes_that_play_ping_pong_meet_the_cap_on_steps() -> None:
    graph = GraphSpec(
        name="g",
        entry="a",
        nodes={"a": _adds("x"), "b": _adds("x")},
        edges=(EdgeSpec(source="a", target="b"), EdgeSpec(source="b", target="a")),
        limits=Limits(max_steps=7),
    )
    outcome = (await _run(graph)).outcomes[0]
    assert outcome.stop_reason == "max_steps"
    assert outcome.state["x"] == 7


async def test_a_resumed_run_starts_where_it_is_told_with_the_state_it_is_given() -> None:
    graph = GraphSpec(
        name="g",
        entry="a",
        nodes={"a": _adds("x"), "b": _adds("x")},
        edges=(EdgeSpec(source="a", target="b"),),
    )
    recorder = await _run(graph, {"x": 10}, start="b")
    assert recorder.started == ["b"]
    assert recorder.outcomes[0].state == {"x": 11}


async def test_a_run_can_not_start_at_a_node_that_does_not_exist() -> None:
    graph = GraphSpec(name="g", entry="a", nodes={"a": _adds("x")}, edges=())
    with pytest.raises(GraphError, match="no node gone"):
        await _run(graph, start="gone")


async def test_an_error_in_a_node_still_gives_one_completion_with_the_state_so_far() -> None:
    async def broken(_state: State, _context: None) -> NodeResult:
        raise ValueError("boom")

    graph = GraphSpec[None](
        name="g",
        entry="a",
        nodes={"a": _adds("x"), "b": broken},
        edges=(EdgeSpec(source="a", target="b"),),
    )
    recorder = Recorder()
    with pytest.raises(ValueError, match="boom"):
        await Executor(graph).run({}, None, recorder)
    assert [outcome.stop_reason for outcome in recorder.outcomes] == ["error"]
    assert recorder.outcomes[0].state == {"x": 1}


async def test_a_cancelled_run_gives_one_completion_and_stays_cancelled() -> None:
    begun = asyncio.Event()

    async def waits(_state: State, _context: None) -> NodeResult:
        begun.set()
        await asyncio.Event().wait()
        return NodeResult()

    graph = GraphSpec[None](name="g", entry="a", nodes={"a": waits}, edges=())
    recorder = Recorder()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, recorder))
        await begun.wait()
        run.cancel()
    assert run.cancelled()
    assert [outcome.stop_reason for outcome in recorder.outcomes] == ["aborted"]


async def test_a_node_cannot_reach_the_state_that_others_see() -> None:
    seen: list[State] = []

    async def keeps(state: State, _context: None) -> NodeResult:
        seen.append(state)
        return NodeResult(update={"x": 2})

    start = {"x": 1}
    graph = GraphSpec(name="g", entry="a", nodes={"a": keeps}, edges=())
    recorder = await _run(graph, start)
    assert start == {"x": 1}
    assert seen[0] == {"x": 1}
    assert recorder.outcomes[0].state == {"x": 2}
