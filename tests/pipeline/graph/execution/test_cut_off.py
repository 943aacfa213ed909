"""Runs that are cut off while branches are on their way: limits, aborts, cancellations, deadlines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import Continue, NodeResult, State
from pipeline.graph.definition.spec import FanOut, Limits, NodeSpec
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import GraphEvent, NodeLeft, RunCompleted
from pipeline.graph.run.outcome import RunOutcome
from tests.pipeline.graph.runs import Heard, Held, after, built, counts, fails, ran, writes

TO_JOIN = ("a>b", "a>c", after("b>d"), after("c>d"))


async def test_the_limit_of_steps_counts_all_branches_and_cuts_them_off() -> None:
    node = Held()

    async def again(_state: State, _context: Any) -> NodeResult:
        await node.begun.wait()
        return NodeResult(decision=Continue())

    graph = built(*TO_JOIN, nodes={"b": again, "c": node}, limits=Limits(max_steps=5))
    run = await ran(graph)
    assert (run.outcome.status, run.outcome.stop_reason) == ("failed", "max_steps")
    assert node.cancelled
    assert run.outcome.path == ("a", "b", "b", "b")
    assert run.heard.outcomes == [run.outcome]


async def test_the_limit_of_runs_in_a_row_holds_in_a_branch() -> None:
    graph = built(*TO_JOIN, nodes={"b": counts("x", Continue())}, limits=Limits(max_consecutive=3))
    outcome = (await ran(graph)).outcome
    assert outcome.stop_reason == "max_loops"
    assert outcome.path.count("b") == 3


async def test_a_run_that_ended_inside_a_fan_out_leaves_its_task_uncancelled() -> None:
    graph = built(*TO_JOIN, nodes={"b": counts("x", Continue())}, limits=Limits(max_consecutive=3))
    await Executor(graph).run({}, None)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.parametrize("times", [0, 1])
async def test_an_abort_reaches_every_branch_also_behind_an_earlier_fan_out(times: int) -> None:
    control, nodes = RunControl(), {"e": Held(), "f": Held()}
    edges = ("d>e", "d>f", after("e>g"), after("f>g"))
    broken = fails(permanent=True) if times else writes()
    spec = NodeSpec(run=broken)
    graph = built("a>b", "a>c", "b>d", "c>d", *edges, nodes={**nodes, "b": spec})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, control=control))
        await nodes["e"].begun.wait()
        await nodes["f"].begun.wait()
        control.abort()
    assert (run.result().status, run.result().stop_reason) == ("cancelled", "aborted")
    assert nodes["e"].cancelled
    assert nodes["f"].cancelled


async def test_the_deadline_of_the_run_holds_behind_a_fan_out_that_failed_inside_a_branch() -> None:
    clock, last = ManualClock(), Held()
    edges = ("a>b", "a>c", "b>e", "b>f", after("e>g"), after("f>g"), after("g>d"), after("c>d"))
    nodes: dict[str, Any] = {
        "a": NodeSpec(run=writes(), fan_out=FanOut(on_failure="continue_others")),
        "b": NodeSpec(run=writes(), fan_out=FanOut()),
        "e": fails(permanent=True),
        "d": last,
    }
    graph = built(*edges, nodes=nodes, limits=Limits(max_seconds=10))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None))
        await last.begun.wait()
        await clock.advance(10)
    assert run.result().stop_reason == "timeout"
    assert last.cancelled


async def test_the_deadline_of_the_run_reaches_every_branch() -> None:
    clock, nodes = ManualClock(), {"b": Held(), "c": Held()}
    graph = built(*TO_JOIN, nodes=nodes, limits=Limits(max_seconds=10))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None))
        await clock.advance(10)
    assert run.result().stop_reason == "timeout"
    assert [node.cancelled for node in nodes.values()] == [True, True]


class CleansUp:
    """A node that takes its time when it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cleaning = asyncio.Event()
        self.may_go = asyncio.Event()

    async def __call__(self, _state: State, _context: Any) -> NodeResult:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cleaning.set()
            await self.may_go.wait()
        return NodeResult()


async def test_a_cancellation_from_outside_is_not_lost_while_a_sibling_cleans_up() -> None:
    node, heard = CleansUp(), Heard()
    graph = built("a>b", "a>c", after("b>d"), after("c>d"), nodes={"b": node, "c": fails(permanent=True)})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, listener=heard))
        await node.cleaning.wait()
        run.cancel()
        await asyncio.sleep(0)
        node.may_go.set()
    assert run.cancelled()
    assert [outcome.status for outcome in heard.outcomes] == ["cancelled"]


async def test_a_sibling_whose_deadline_passes_while_it_is_being_cancelled_changes_nothing() -> None:
    clock, node = ManualClock(), CleansUp()

    async def breaks(_state: State, _context: Any) -> NodeResult:
        await node.begun.wait()
        return NodeResult(error="no", permanent=True)

    graph = built(*TO_JOIN, nodes={"b": node, "c": breaks}, fan_out=FanOut(branch_timeout_s=5))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None))
        await node.cleaning.wait()
        await clock.advance(5)
        node.may_go.set()
    assert [failure.node for failure in run.result().failures] == ["c"]


async def test_a_deadline_that_passes_while_a_slow_listener_hears_of_the_failure_changes_nothing() -> None:
    clock, reported, outcomes = ManualClock(), asyncio.Event(), list[RunOutcome]()

    async def listener(event: GraphEvent) -> None:
        if isinstance(event, NodeLeft) and event.node == "c":
            await reported.wait()
        if isinstance(event, RunCompleted):
            outcomes.append(event.outcome)

    graph = built(
        *TO_JOIN, nodes={"b": Held(), "c": fails(permanent=True)}, fan_out=FanOut(branch_timeout_s=5)
    )
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None, listener=listener))
        await clock.advance(5)
        reported.set()
    assert [failure.node for failure in run.result().failures] == ["c"]
    assert outcomes == [run.result()]


async def test_a_listener_that_raises_in_a_branch_fails_the_run_and_cuts_off_the_others() -> None:
    node = Held()

    async def listener(event: GraphEvent) -> None:
        if isinstance(event, NodeLeft) and event.node == "c":
            raise OSError("the screen is gone")

    with pytest.raises(OSError, match="the screen is gone"):
        await Executor(built(*TO_JOIN, nodes={"b": node})).run({}, None, listener=listener)
    assert node.cancelled


async def test_what_the_nodes_of_branches_have_kept_is_in_their_overlays_only() -> None:
    control, begun = RunControl(), asyncio.Barrier(3)

    def keeps(name: str) -> Any:
        async def node(_state: State, _context: Any) -> NodeResult:
            current_step().keep({name: "half"})
            await begun.wait()
            await asyncio.Event().wait()
            return NodeResult()

        return node

    graph = built(*TO_JOIN, nodes={"a": writes(x=1), "b": keeps("b"), "c": keeps("c")})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, control=control))
        await begun.wait()
        control.abort()
    assert run.result().stop_reason == "aborted"
    assert run.result().state == {"x": 1}


async def test_a_pause_that_was_asked_for_halts_every_branch_at_its_next_boundary() -> None:
    control, nodes = RunControl(), {"b": Held({"x": 1}), "c": Held({"y": 1})}
    graph = built("a>b", "b>e", "e>d", "a>c", "c>f", "f>d", nodes=nodes)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, control=control))
        for node in nodes.values():
            await node.begun.wait()
        control.request_pause()
        for node in nodes.values():
            node.release.set()
    assert (run.result().status, run.result().stop_reason) == ("paused", "pause_requested")
    assert sorted(run.result().path) == ["a", "b", "c"]
