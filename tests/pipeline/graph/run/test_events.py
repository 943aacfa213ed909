"""What a listener hears, event by event."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import NodeResult, Pause
from pipeline.graph.definition.spec import END, GraphSpec, NodeSpec, OnFailure, RetryPolicy, When
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.events import (
    BranchesJoined,
    Checkpointed,
    EdgeConditionError,
    EdgeTraversed,
    GateOpened,
    GraphEvent,
    NodeEntered,
    NodeLeft,
    NodeRetried,
    RunCompleted,
)
from pipeline.graph.run.outcome import Gate, RunFailure
from tests.pipeline.graph.runs import Held, after, built, fails, ran, writes
from tests.pipeline.graph.written import edge_of


class Kept:
    """A log in memory."""

    def __init__(self) -> None:
        self.records: list[Mapping[str, Any]] = []

    def append(self, record: Mapping[str, Any]) -> None:
        self.records.append(record)

    async def barrier(self) -> None:
        pass

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.records += records


async def test_a_small_graph_is_reported_in_exactly_this_order() -> None:
    run = await ran(built("a>b", "b>", nodes={"a": writes(x=1), "b": writes(y=2)}))
    assert run.heard.events == [
        NodeEntered("a"),
        NodeLeft("a", "next", {"x": 1}, 0.0),
        EdgeTraversed("a", "b"),
        NodeEntered("b"),
        NodeLeft("b", "next", {"y": 2}, 0.0),
        EdgeTraversed("b", END),
        RunCompleted(run.outcome),
    ]


async def test_without_details_a_listener_receives_the_nodes_and_the_end_only() -> None:
    def graph() -> GraphSpec[Any]:
        retried = NodeSpec(run=fails(times=1), retry=RetryPolicy(delay_s=0))
        return built(
            after("a>b"),
            after("a>c"),
            "b>d",
            "c>d",
            edge_of("d>e", When("y > 'a'")),
            "d>f",
            nodes={"b": retried, "c": writes(y=2)},
            pause_nodes=("f",),
        )

    whole = await ran(graph(), log=Kept())
    part = await ran(graph(), log=Kept(), details=False)
    kinds = (NodeEntered, NodeLeft, RunCompleted)
    assert {type(event) for event in whole.heard.events} == set(get_args(GraphEvent))
    wanted = [repr(event) for event in whole.heard.events if isinstance(event, kinds[:2])]
    assert [repr(event) for event in part.heard.events[:-1]] == wanted
    assert isinstance(part.heard.events[-1], RunCompleted)


async def test_with_a_log_each_record_is_reported_before_what_it_made_happen() -> None:
    log = Kept()
    run = await ran(built("a>b", "b>"), log=log)
    assert run.heard.events == [
        NodeEntered("a"),
        Checkpointed("node_complete", "a"),
        NodeLeft("a", "next", {}, 0.0),
        EdgeTraversed("a", "b"),
        NodeEntered("b"),
        Checkpointed("node_complete", "b"),
        NodeLeft("b", "next", {}, 0.0),
        EdgeTraversed("b", END),
        Checkpointed("end", ""),
        RunCompleted(run.outcome),
    ]
    assert [record["do"] for record in log.records] == ["step", "step", "end"]


async def test_retries_and_the_failure_for_good_are_reported() -> None:
    node = NodeSpec[Any](run=fails("no"), retry=RetryPolicy(max_attempts=2, delay_s=1))
    run = await ran(built(edge_of("a>b", OnFailure()), nodes={"a": node}))

    def failure(attempts: int) -> RunFailure:
        return RunFailure(node="a", code="node_error", message="no", attempts=attempts)

    assert run.heard.events[:4] == [
        NodeEntered("a"),
        NodeRetried("a", 1, 1.0, failure(1)),
        NodeLeft("a", "next", {}, 0.0, failure(2)),
        EdgeTraversed("a", "b"),
    ]


async def test_a_gate_is_reported_and_no_way_on() -> None:
    run = await ran(built("a>b", nodes={"a": writes(Pause(prompt="sure?", options=("yes",)))}), run_id="r")
    gate = Gate(id="r:/a:1", node="a", prompt="sure?", options=("yes",))
    assert run.heard.events == [
        NodeEntered("a"),
        NodeLeft("a", "pause", {}, 0.0),
        GateOpened(gate),
        RunCompleted(run.outcome),
    ]
    assert run.outcome.gates == (gate,)


async def test_what_was_wrong_with_a_condition_comes_before_the_way_that_is_taken() -> None:
    run = await ran(built(edge_of("a>b", When("x < 'a'")), "a>c", nodes={"a": writes(x=1)}))
    reported = [event for event in run.heard.events if isinstance(event, EdgeConditionError | EdgeTraversed)]
    assert [type(event) for event in reported] == [EdgeConditionError, EdgeTraversed]


async def test_a_fan_out_is_reported_edge_by_edge_and_its_join_before_the_next_node() -> None:
    run = await ran(built("a>b", "a>c", "b>d", "c>d"))
    events = run.heard.events
    assert events[2:4] == [EdgeTraversed("a", "b"), EdgeTraversed("a", "c")]
    assert run.heard.started == ["a", "b", "c", "d"]
    joined = events.index(BranchesJoined("a", "d", ("b", "c"), ()))
    assert events[joined + 1] == NodeEntered("d")
    assert events[joined - 1] == EdgeTraversed("c", "d")


async def test_the_nodes_of_a_subgraph_bear_its_name() -> None:
    run = await ran(built("a>b", nodes={"a": NodeSpec(subgraph=built("a>b", nodes={"b": writes(x=1)}))}))
    assert run.heard.started == ["a", "a.a", "a.b", "b"]
    assert [(event.node, dict(event.update)) for event in run.heard.completed] == [
        ("a.a", {}),
        ("a.b", {"x": 1}),
        ("a", {"x": 1}),
        ("b", {}),
    ]
    assert run.heard.traversed == [("a.a", "a.b"), ("a", "b")]


async def test_a_skipped_node_has_not_started() -> None:
    graph = built(
        *("a>b", edge_of("b>a", When("not x")), "b>c"),
        nodes={
            "a": NodeSpec(run=writes(), max_visits=1),
            "b": _second(),
        },
    )
    run = await ran(graph)
    assert run.heard.started == ["a", "b", "b", "c"]
    assert [event.node for event in run.heard.completed if event.skipped] == ["a"]


def _second() -> Any:
    visits: list[int] = []

    async def node(_state: Any, _context: Any) -> Any:
        visits.append(1)
        return NodeResult(update={"x": len(visits) > 1})

    return node


async def test_a_slow_listener_hears_all_of_a_branch_that_ended_before_the_last_one() -> None:
    heard: list[GraphEvent] = []
    join_reported = asyncio.Event()

    async def listener(event: GraphEvent) -> None:
        if isinstance(event, NodeLeft) and event.node == "b":
            await join_reported.wait()
        if isinstance(event, BranchesJoined):
            join_reported.set()
        heard.append(event)

    held = Held()
    graph = built("a>b", "a>c", "b>d", "c>d", nodes={"c": held})
    async with asyncio.TaskGroup() as group:
        group.create_task(Executor(graph, clock=ManualClock()).run({}, None, listener=listener))
        await held.begun.wait()
        held.release.set()
    assert EdgeTraversed("b", "d") in heard
    completed = [event.node for event in heard if isinstance(event, NodeLeft)]
    assert sorted(completed) == ["a", "b", "c", "d"]
    assert isinstance(heard[-1], RunCompleted)


async def test_nothing_is_reported_of_a_cancelled_sibling_but_its_start() -> None:
    held = Held()
    nodes = {"b": held, "c": fails(permanent=True)}
    run = await ran(built("a>b", "a>c", after("b>d"), after("c>d"), nodes=nodes))
    assert held.cancelled
    assert run.heard.started == ["a", "b", "c"]
    assert [event.node for event in run.heard.completed] == ["a", "c"]
    assert run.heard.joined == [BranchesJoined("a", "", ("c",), ("c",))]
