"""Parallel branches on their way: what they see, how they fail, when they are cut off.

Covers: pipeline/graph/execution/run_loop.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import End, Goto, NodeResult, State
from pipeline.graph.definition.spec import END, EdgeSpec, FanOut, NodeSpec, RetryPolicy, Route, When
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import RunOutcome
from tests.pipeline.graph.runs import Heard, Held, Stubborn, after, built, counts, fails, ran, sees, writes
from tests.pipeline.graph.written import edge_of

ONCE = RetryPolicy(max_attempts=1)
TO_JOIN = ("a>b", "a>c", after("b>d"), after("c>d"))
"""Branches b and c behind a, which meet in d."""
CONTINUE = FanOut(on_failure="continue_others")
WAIT_ALL = FanOut(on_failure="wait_all")


async def test_several_edges_run_side_by_side_and_meet_in_their_join() -> None:
    met = asyncio.Barrier(2)

    async def waits_for_the_other(_state: State, _context: Any) -> NodeResult:
        await met.wait()
        return NodeResult()

    run = await ran(built(*TO_JOIN, nodes={"b": waits_for_the_other, "c": waits_for_the_other}))
    assert run.outcome.path[0] == "a"
    assert set(run.outcome.path[1:3]) == {"b", "c"}
    assert run.outcome.path[3:] == ("d",)
    assert run.outcome.quality == "clean"


async def test_a_single_way_is_no_fan_out() -> None:
    run = await ran(built("a>b", edge_of("a>c", When("False")), "b>d", "c>d"))
    assert run.heard.joined == []


async def test_a_branch_may_be_several_nodes_long_and_its_sibling_empty() -> None:
    run = await ran(built("a>b", "a>d", "b>c", "c>d", nodes={"c": writes(x=1)}))
    assert run.outcome.path == ("a", "b", "c", "d")
    assert run.outcome.state == {"x": 1}


async def test_branches_of_different_length_wait_for_the_longest() -> None:
    run = await ran(built("a>b", "a>c", "b>d", "c>e", "e>f", "f>d"))
    assert run.outcome.path[-1] == "d"
    assert sorted(run.outcome.path) == list("abcdef")


async def test_a_branch_may_loop_inside() -> None:
    async def loops(state: State, _context: Any) -> NodeResult:
        return NodeResult(decision=Goto("b") if state["x"] < 3 else Goto("d"))

    graph = built("a>b", "a>c", "b>e", "e>d", "c>d", nodes={"b": counts("x"), "e": loops})
    outcome = (await ran(graph)).outcome
    assert outcome.path.count("b") == 3
    assert outcome.path[-1] == "d"


async def test_a_jump_out_of_a_branch_fails_its_node() -> None:
    graph = built(*TO_JOIN, "d>e", nodes={"b": writes(Goto("e"))})
    outcome = (await ran(graph)).outcome
    assert outcome.error is not None
    assert outcome.error.message == "node b jumps to e, out of its branch b"


async def test_branches_without_a_join_run_to_their_ends_and_the_run_with_them() -> None:
    run = await ran(built("a>b", "a>c", "b>e", "c>f", nodes={"e": writes(x=1), "f": writes(y=2)}))
    assert run.outcome.status == "completed"
    assert run.outcome.state == {"x": 1, "y": 2}
    assert sorted(run.outcome.path) == list("abcef")
    assert run.heard.joined[0].join == END


async def test_a_branch_that_asks_for_the_end_ends_alone() -> None:
    run = await ran(built(*TO_JOIN, nodes={"b": writes(End(), x=1), "c": writes(y=2)}))
    assert run.outcome.path[-1] == "d"
    assert run.outcome.state == {"x": 1, "y": 2}


async def test_a_run_whose_branches_have_all_ended_is_over_and_says_why() -> None:
    graph = built(
        *TO_JOIN, nodes={"b": writes(End("waiting_for_user")), "c": writes(End())}, terminals=("d",)
    )
    outcome = (await ran(graph)).outcome
    assert "d" not in outcome.path
    assert (outcome.status, outcome.stop_reason) == ("completed", "waiting_for_user")


async def test_a_branch_may_end_in_a_terminal() -> None:
    outcome = (await ran(built("a>b", "a>c", terminals=("b", "c")))).outcome
    assert outcome.status == "completed"


async def test_a_route_that_names_several_targets_fans_out() -> None:
    route = Route(lambda state: ("b", "c") if state["both"] else "b", ("b", "c"))
    graph = built(EdgeSpec(source="a", when=route), "b>d", "c>d")
    assert sorted((await ran(graph, {"both": True})).outcome.path) == list("abcd")
    assert (await ran(graph, {"both": False})).outcome.path == ("a", "b", "d")


async def test_a_route_whose_choice_cannot_run_side_by_side_fails_its_node() -> None:
    route = Route(lambda _: ("b", "c"), ("b", "c", "d"))
    graph = built(EdgeSpec(source="a", when=route), "b>d", edge_of("c>b", When("x")), "c>d", "d>e", nodes={})
    outcome = (await ran(graph)).outcome
    assert outcome.error is not None
    assert "fan-out at a" in outcome.error.message


async def test_the_edges_of_the_state_that_a_branch_writes_are_seen_by_no_other_before_the_join() -> None:
    seen_by_c: list[dict[str, Any]] = []
    seen_by_d: list[dict[str, Any]] = []
    written = asyncio.Event()

    async def b2(_state: State, _context: Any) -> NodeResult:
        written.set()
        return NodeResult()

    async def c(state: State, _context: Any) -> NodeResult:
        await written.wait()
        seen_by_c.append(dict(state))
        return NodeResult(update={"y": 2})

    graph = built(
        *("a>b", "b>e", "e>d", "a>c", "c>d"),
        nodes={"a": writes(x=0), "b": writes(x=1), "e": b2, "c": c, "d": sees(seen_by_d)},
    )
    await ran(graph)
    assert seen_by_c == [{"x": 0}]
    assert seen_by_d == [{"x": 1, "y": 2}]


async def test_a_fan_out_inside_a_branch_joins_first() -> None:
    edges = ("a>b", "a>c", "b>e", "b>f", "e>g", "f>g", "g>d", "c>d")
    run = await ran(built(*edges, nodes={"e": writes(e=1), "f": writes(f=1), "c": writes(c=1)}))
    assert run.outcome.state == {"e": 1, "f": 1, "c": 1}
    assert run.outcome.path.index("g") > max(run.outcome.path.index("e"), run.outcome.path.index("f"))
    assert [(join.source, join.join) for join in run.heard.joined] == [("b", "g"), ("a", "d")]


async def test_a_nested_fan_out_may_share_the_join_of_the_outer_one() -> None:
    edges = ("a>b", "a>c", "b>e", "b>f", "e>d", "f>d", "c>d")
    run = await ran(built(*edges, nodes={"e": writes(e=1), "f": writes(f=1), "c": writes(c=1)}))
    assert run.outcome.state == {"e": 1, "f": 1, "c": 1}
    assert run.outcome.path.count("d") == 1


async def test_a_subgraph_may_be_a_branch() -> None:
    inner = built("a>b", nodes={"a": writes(x=1), "b": writes(y=2)})
    run = await ran(built(*TO_JOIN, nodes={"b": NodeSpec(subgraph=inner, writes=("y",)), "c": writes(z=3)}))
    assert run.outcome.state == {"y": 2, "z": 3}
    assert {"b.a", "b.b", "b"} <= set(run.outcome.path)


async def test_a_branch_retries_its_nodes() -> None:
    run = await ran(built(*TO_JOIN, nodes={"b": fails(times=2, x=1)}))
    assert run.outcome.state == {"x": 1}
    assert (run.outcome.retries, run.outcome.quality) == (2, "degraded")


async def test_an_event_loop_node_in_a_branch_is_run_once() -> None:
    run = await ran(built(*TO_JOIN, nodes={"b": NodeSpec(run=fails(times=1), event_loop=True)}))
    assert run.outcome.status == "failed"
    assert run.outcome.retries == 0


# -- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["b", "c"])
async def test_fail_all_cancels_a_sibling_of_ten_seconds_at_once(failing: str) -> None:
    slow, clock, heard = Held(), ManualClock(), Heard()
    other = "c" if failing == "b" else "b"

    async def takes_ten_seconds(_state: State, _context: Any) -> NodeResult:
        try:
            await clock.sleep(10)
        except asyncio.CancelledError:
            slow.cancelled = True
            raise
        return NodeResult(update={"late": True})

    async def breaks(_state: State, _context: Any) -> NodeResult:
        await clock.sleep(0.5)
        return NodeResult(error="no", permanent=True)

    graph = built(*TO_JOIN, nodes={failing: breaks, other: takes_ten_seconds})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None, listener=heard))
        await clock.advance(0.5)
    outcome = run.result()
    assert slow.cancelled
    assert clock.monotonic() == 0.5
    assert (outcome.status, outcome.stop_reason, outcome.path) == ("failed", "error", ("a", failing))
    assert outcome.error is not None
    assert (outcome.error.node, outcome.error.message) == (failing, "no")
    assert outcome.state == {}
    assert [(join.join, join.failed) for join in heard.joined] == [("", (failing,))]


async def test_fail_all_waits_until_the_cancelled_sibling_is_gone() -> None:
    begun, may_go = asyncio.Event(), asyncio.Event()

    async def cleans_up(_state: State, _context: Any) -> NodeResult:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await may_go.wait()
        return NodeResult()

    clock = ManualClock()
    graph = built(*TO_JOIN, nodes={"b": cleans_up, "c": fails(permanent=True)})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None))
        await begun.wait()
        await clock.advance(5)
        assert not run.done()
        may_go.set()
    assert run.result().status == "failed"


@pytest.mark.parametrize("error", [None, ValueError("not now")])
async def test_a_sibling_that_swallows_its_cancellation_changes_nothing(error: Exception | None) -> None:
    node, waited = Stubborn(error), asyncio.Event()

    async def breaks(_state: State, _context: Any) -> NodeResult:
        await node.begun.wait()
        waited.set()
        return NodeResult(error="no", permanent=True)

    graph = built("a>b", "b>e", after("e>d"), "a>c", after("c>d"), nodes={"b": node, "c": breaks})
    run = await ran(graph)
    assert waited.is_set()
    assert node.times == 1
    assert (run.outcome.path, run.outcome.state, run.outcome.retries) == (("a", "c"), {}, 0)
    assert run.heard.started == ["a", "b", "c"]


async def test_a_failure_that_an_edge_of_the_branch_rescues_is_none_of_the_fan_out() -> None:
    graph = built(
        "a>b", "a>c", "b>d", "c>d", nodes={"b": NodeSpec(run=fails(), retry=ONCE), "c": writes(y=1)}
    )
    outcome = (await ran(graph)).outcome
    assert outcome.path[-1] == "d"
    assert (outcome.status, outcome.quality) == ("completed", "degraded")


async def test_continue_others_lets_the_rest_finish() -> None:
    seen: list[dict[str, Any]] = []
    graph = built(
        *TO_JOIN,
        nodes={"b": fails("no", permanent=True), "c": writes(y=1), "d": sees(seen)},
        fan_out=CONTINUE,
    )
    run = await ran(graph)
    assert (run.outcome.status, run.outcome.quality, run.outcome.state) == ("completed", "degraded", {"y": 1})
    assert seen[0]["y"] == 1
    assert dict(seen[0]["fanout"]["results"]) == {"c": {"y": 1}}
    assert seen[0]["fanout"]["errors"]["b"]["message"] == "no"
    assert run.heard.joined[0].failed == ("b",)


async def test_continue_others_without_a_success_fails() -> None:
    nodes = {"b": fails("b broke", permanent=True), "c": fails("c broke", permanent=True)}
    outcome = (await ran(built(*TO_JOIN, nodes=nodes, fan_out=CONTINUE))).outcome
    assert outcome.status == "failed"
    assert "d" not in outcome.path
    assert sorted(failure.node for failure in outcome.failures) == ["b", "c"]


async def test_wait_all_continues_to_the_join_without_a_success() -> None:
    seen: list[dict[str, Any]] = []
    nodes = {"b": fails("b broke", permanent=True), "c": fails("c broke", permanent=True), "d": sees(seen)}
    outcome = (await ran(built(*TO_JOIN, nodes=nodes, fan_out=WAIT_ALL))).outcome
    assert (outcome.status, outcome.quality) == ("completed", "degraded")
    assert dict(seen[0]["fanout"]["results"]) == {}
    assert {name: error["message"] for name, error in seen[0]["fanout"]["errors"].items()} == {
        "b": "b broke",
        "c": "c broke",
    }


async def test_wait_all_without_a_join_and_without_a_success_fails() -> None:
    nodes = {name: fails(permanent=True) for name in "bc"}
    assert (await ran(built("a>b", "a>c", nodes=nodes, fan_out=WAIT_ALL))).outcome.status == "failed"


@pytest.mark.parametrize("policy", [CONTINUE, WAIT_ALL])
async def test_a_slow_branch_is_waited_for_after_a_failure(policy: FanOut) -> None:
    node, clock = Held({"y": 1}), ManualClock()
    graph = built(*TO_JOIN, nodes={"b": fails(permanent=True), "c": node}, fan_out=policy)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None))
        await clock.advance(10)
        assert not run.done()
        node.release.set()
    assert run.result().state == {"y": 1}
    assert run.result().path[-1] == "d"


async def test_a_nodes_own_policy_comes_before_that_of_the_graph() -> None:
    nodes: dict[str, Any] = {"a": NodeSpec(run=writes(), fan_out=CONTINUE), "b": fails(permanent=True)}
    assert (await ran(built(*TO_JOIN, nodes=nodes))).outcome.status == "completed"
    nodes["a"] = NodeSpec(run=writes(), fan_out=FanOut())
    assert (await ran(built(*TO_JOIN, nodes=nodes, fan_out=CONTINUE))).outcome.status == "failed"


async def test_a_fan_out_that_fails_inside_a_branch_fails_that_branch_only() -> None:
    edges = ("a>b", "a>c", "b>e", "b>f", after("e>g"), after("f>g"), "g>d", "c>d")
    nodes = {
        "a": NodeSpec(run=writes(), fan_out=CONTINUE),
        "b": NodeSpec(run=writes(), fan_out=FanOut()),
        "e": fails(permanent=True),
        "c": writes(c=1),
    }
    outcome = (await ran(built(*edges, nodes=nodes))).outcome
    assert outcome.path[-1] == "d"
    assert "g" not in outcome.path
    assert outcome.state == {"c": 1}
    assert [failure.node for failure in outcome.failures] == ["e"]


# -- deadlines and cuts ---------------------------------------------------------------------------


async def outcome_after(
    seconds: float, nodes: dict[str, Any], policy: FanOut, control: Callable[[], None] | None = None
) -> RunOutcome:
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(
            Executor(built(*TO_JOIN, nodes=nodes, fan_out=policy), clock=clock).run({}, None)
        )
        await clock.advance(seconds - 1)
        assert not run.done()
        await clock.advance(1)
    return run.result()


async def test_a_branch_that_takes_too_long_has_failed() -> None:
    node = Held()
    outcome = await outcome_after(5, {"b": node}, FanOut(branch_timeout_s=5))
    assert node.cancelled
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.node) == ("timeout", "b")
    assert outcome.error.message == "branch b took longer than 5 seconds"


async def test_a_branch_that_takes_too_long_is_an_error_among_the_results_and_degrades_the_run() -> None:
    seen: list[dict[str, Any]] = []
    policy = FanOut(on_failure="wait_all", branch_timeout_s=5)
    outcome = await outcome_after(5, {"b": Held(), "c": writes(y=1), "d": sees(seen)}, policy)
    assert seen[0]["fanout"]["errors"]["b"]["code"] == "timeout"
    assert outcome.quality == "degraded"
    assert [failure.code for failure in outcome.failures] == ["timeout"]


async def test_branches_have_five_minutes_unless_it_is_said_otherwise() -> None:
    outcome = await outcome_after(300, {"b": Held()}, FanOut())
    assert outcome.error is not None
    assert outcome.error.code == "timeout"


async def test_a_branch_may_have_no_deadline() -> None:
    node, clock = Held(), ManualClock()
    graph = built(*TO_JOIN, nodes={"b": node}, fan_out=FanOut(branch_timeout_s=None))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None))
        await clock.advance(100_000)
        node.release.set()
    assert run.result().status == "completed"
