"""The loop: decisions, limits, deadlines, how a run stops, and exactly one completion.

Covers: pipeline/graph/execution/edge_selection.py.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import (
    Continue,
    End,
    Goto,
    Next,
    NodeDecision,
    NodeResult,
    Pause,
    Revise,
    State,
)
from pipeline.graph.definition.spec import END, Limits, NodeSpec, OnFailure, RetryPolicy
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import GraphEvent, NodeEntered, RunCompleted
from pipeline.graph.run.outcome import RunOutcome
from tests.pipeline.graph.runs import Heard, Held, Stubborn, after, built, counts, fails, raises, ran, writes
from tests.pipeline.graph.written import edge_of

# -- decisions ------------------------------------------------------------------------------------


async def test_a_run_goes_along_the_edges_to_the_end() -> None:
    run = await ran(built("a>b", "b>", nodes={"a": counts("x"), "b": counts("x")}))
    assert run.outcome.status == "completed"
    assert run.outcome.stop_reason == "completed"
    assert run.outcome.path == ("a", "b")
    assert run.outcome.state == {"x": 2}
    assert run.heard.traversed == [("a", "b"), ("b", "end")]


async def test_a_node_without_edges_ends_the_run() -> None:
    run = await ran(built("a>b", nodes={"b": counts("x")}))
    assert run.outcome.stop_reason == "completed"
    assert run.outcome.quality == "clean"


async def test_a_jump_overrides_the_edges_and_keeps_its_update() -> None:
    nodes = {"a": writes(Goto("c"), x=1), "c": counts("x", End())}
    run = await ran(built("a>b", "b>c", "c>", nodes=nodes))
    assert run.outcome.path == ("a", "c")
    assert run.outcome.state == {"x": 2}


async def test_a_jump_to_the_end_ends_the_run() -> None:
    run = await ran(built("a>b", "b>", nodes={"a": writes(Goto(END))}))
    assert run.outcome.path == ("a",)
    assert run.outcome.status == "completed"


async def test_a_jump_to_nowhere_fails_the_run_by_name() -> None:
    run = await ran(built(nodes={"a": writes(Goto("ghost"))}))
    assert run.outcome.status == "failed"
    with pytest.raises(GraphError, match="node a jumps to ghost, which does not exist"):
        run.outcome.raise_for_failure()


async def test_a_jump_that_goes_to_does_not_declare_fails_the_node_and_its_update_is_dropped() -> None:
    nodes = {"a": NodeSpec(run=writes(Goto("c"), x=1), goes_to=("b",))}
    run = await ran(built(after("a>b"), "b>c", "c>", nodes=nodes))
    assert run.outcome.error is not None
    assert "not declared in goes_to" in run.outcome.error.message
    assert run.outcome.state == {}


async def test_a_declared_jump_is_followed() -> None:
    nodes = {"a": NodeSpec(run=writes(Goto("c")), goes_to=("c",))}
    assert (await ran(built("a>b", "b>c", "c>", nodes=nodes))).outcome.path == ("a", "c")


async def test_continue_runs_the_same_node_again() -> None:
    async def node(state: State, _context: Any) -> NodeResult:
        x = state.get("x", 0) + 1
        return NodeResult(update={"x": x}, decision=Continue() if x < 3 else End())

    assert (await ran(built("a>b", "b>", nodes={"a": node}))).outcome.path == ("a", "a", "a")


async def test_revise_goes_back_to_the_declared_reviser() -> None:
    async def check(state: State, _context: Any) -> NodeResult:
        return NodeResult(decision=Revise() if state["x"] < 2 else End())

    nodes = {"a": counts("x"), "b": NodeSpec(run=check, reviser="a")}
    run = await ran(built("a>b", "b>", nodes=nodes))
    assert run.outcome.path == ("a", "b", "a", "b")


async def test_a_revision_without_a_declared_reviser_fails_the_node() -> None:
    outcome = (await ran(built(nodes={"a": writes(Revise())}))).outcome
    assert outcome.error is not None
    assert "declares no reviser" in outcome.error.message


@pytest.mark.parametrize("reason", ["completed", "waiting_for_user", "blocked"])
async def test_the_end_that_a_node_asks_for_says_why(
    reason: Literal["completed", "waiting_for_user", "blocked"],
) -> None:
    outcome = (await ran(built("a>b", "b>", nodes={"a": writes(End(reason))}))).outcome
    assert outcome.path == ("a",)
    assert (outcome.status, outcome.stop_reason) == ("completed", reason)


async def test_a_run_that_waited_for_the_user_does_not_silence_the_next_one() -> None:
    graph = built("a>", nodes={"a": counts("x", End("waiting_for_user"))})
    first = (await ran(graph)).outcome
    second = (await ran(graph, base=first.state)).outcome
    assert (second.path, second.state["x"]) == (("a",), 2)


async def test_something_that_is_no_result_fails_the_node_in_words() -> None:
    async def node(_state: State, _context: Any) -> Any:
        return {"x": 1}

    outcome = (await ran(built(nodes={"a": node}))).outcome
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.attempts) == ("bad_result", 1)
    assert outcome.error.message == "node a returned dict, not a NodeResult"


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [Continue(), Goto("b"), Next()])
async def test_the_same_node_runs_forty_times_in_a_row_and_not_once_more(again: NodeDecision) -> None:
    graph = built("a>b", "b>b", edge_of("b>", OnFailure()), nodes={"b": counts("x", again)})
    outcome = (await ran(graph)).outcome
    assert (outcome.status, outcome.stop_reason) == ("failed", "max_loops")
    assert outcome.state["x"] == 40
    assert outcome.error is not None
    assert outcome.error.message == "node b ran 40 times in a row"


async def test_the_limit_of_runs_in_a_row_can_be_set() -> None:
    graph = built("a>", nodes={"a": counts("x", Continue())}, limits=Limits(max_consecutive=3))
    assert (await ran(graph)).outcome.state["x"] == 3


async def test_another_node_in_between_starts_the_count_in_a_row_again() -> None:
    async def agent(state: State, _context: Any) -> NodeResult:
        x = state.get("x", 0) + 1
        return NodeResult(update={"x": x}, decision=End() if x == 6 else Continue() if x != 3 else Goto("b"))

    graph = built(
        "a>b", "b>a", edge_of("b>", OnFailure()), nodes={"a": agent}, limits=Limits(max_consecutive=3)
    )
    assert (await ran(graph)).outcome.state["x"] == 6


async def test_two_nodes_that_play_ping_pong_meet_the_cap_on_steps() -> None:
    graph = built(
        "a>b",
        "b>a",
        edge_of("b>", OnFailure()),
        nodes={"a": counts("x"), "b": counts("x")},
        limits=Limits(max_steps=7),
    )
    outcome = (await ran(graph)).outcome
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("failed", "max_steps", "failed")
    assert outcome.state["x"] == 7


async def test_a_run_of_exactly_the_allowed_steps_completes() -> None:
    assert (await ran(built("a>b", "b>", limits=Limits(max_steps=2)))).outcome.status == "completed"


async def test_retries_are_no_steps() -> None:
    graph = built("a>b", "b>", nodes={"a": fails(times=2)}, limits=Limits(max_steps=2))
    assert (await ran(graph)).outcome.status == "completed"


async def test_a_run_that_takes_too_long_is_cut_off() -> None:
    node, clock, heard = Held(), ManualClock(), Heard()
    graph = built("a>b", "b>", nodes={"b": node}, limits=Limits(max_seconds=10))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None, listener=heard))
        await clock.advance(9)
        assert not run.done()
        await clock.advance(1)
    assert node.cancelled
    assert (run.result().status, run.result().stop_reason) == ("failed", "timeout")
    assert run.result().path == ("a",)
    assert heard.outcomes == [run.result()]


async def test_a_node_that_swallows_the_deadline_of_the_run_is_the_last_one() -> None:
    clock = ManualClock()
    graph = built("a>b", "b>", nodes={"a": Stubborn()}, limits=Limits(max_seconds=10))
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None))
        await clock.advance(10)
    assert run.result().stop_reason == "timeout"
    assert "b" not in run.result().path


async def test_a_node_that_takes_too_long_fails_and_is_tried_again() -> None:
    clock, heard = ManualClock(), Heard()
    graph = built(nodes={"a": NodeSpec(run=Held(), timeout_s=5, retry=RetryPolicy(max_attempts=2, jitter=0))})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph, clock=clock).run({}, None, listener=heard))
        await clock.advance(5)
        assert [event.failure.code for event in heard.retried] == ["timeout"]
        await clock.advance(6)
    outcome = run.result()
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.attempts) == ("timeout", 2)
    assert outcome.error.message == "node a took longer than 5 seconds"


async def test_a_timeout_of_the_nodes_own_is_an_ordinary_failure() -> None:
    nodes = {"a": NodeSpec(run=raises(TimeoutError), timeout_s=5, retry=RetryPolicy(max_attempts=1))}
    outcome = (await ran(built(nodes=nodes, limits=Limits(max_seconds=9)))).outcome
    assert outcome.error is not None
    assert outcome.error.code == "node_error"


# -- terminals and entry points ------------------------------------------------------------------------


async def test_a_terminal_ends_the_run_whatever_its_node_decides() -> None:
    graph = built("a>b", nodes={"b": counts("x", Goto("a"))}, terminals=("b",))
    outcome = (await ran(graph)).outcome
    assert (outcome.path, outcome.status) == (("a", "b"), "completed")


async def test_a_run_that_ends_beside_its_terminals_has_failed() -> None:
    graph = built("a>b", edge_of("a>c", OnFailure()), nodes={"a": fails(permanent=True)}, terminals=("b",))
    outcome = (await ran(graph)).outcome
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("failed", "no_terminal", "failed")
    with pytest.raises(GraphError, match="ended at c, which is not one of the graph's terminals"):
        outcome.raise_for_failure()


async def test_a_node_that_asks_for_the_end_needs_no_terminal() -> None:
    assert (
        await ran(built("a>b", nodes={"a": writes(End())}, terminals=("b",)))
    ).outcome.status == "completed"


async def test_a_pause_at_a_terminal_ends_well_once_it_is_answered() -> None:
    graph = built("a>b", nodes={"b": writes(Pause())}, terminals=("b",))
    outcome = (await ran(graph)).outcome
    assert outcome.status == "paused"


async def test_an_entry_point_begins_elsewhere() -> None:
    graph = built("a>b", "b>", entry_points={"later": "b"})
    assert (await ran(graph)).outcome.path == ("a", "b")
    assert (await ran(graph, entry="later")).outcome.path == ("b",)


async def test_an_unknown_entry_point_is_refused() -> None:
    heard = Heard()
    with pytest.raises(GraphError, match="graph g has no entry point b"):
        await Executor(built("a>b", "b>")).run({}, None, entry="b", listener=heard)
    assert heard.events == []


async def test_inputs_that_are_not_plain_data_are_refused() -> None:
    with pytest.raises(GraphError, match="the inputs, key x"):
        await Executor(built("a>")).run({"x": object()}, None)


# -- one completion -------------------------------------------------------------------------------


async def test_a_failure_gives_one_completion_with_the_state_so_far() -> None:
    graph = built("a>b", nodes={"a": counts("x"), "b": raises(lambda: ValueError("boom"))})
    run = await ran(graph)
    assert run.heard.outcomes == [run.outcome]
    assert run.heard.events[-1] == RunCompleted(run.outcome)
    assert (run.outcome.status, run.outcome.stop_reason) == ("failed", "error")
    assert run.outcome.state == {"x": 1}
    with pytest.raises(ValueError, match="boom"):
        run.outcome.raise_for_failure()


async def test_a_cancelled_run_gives_one_completion_and_stays_cancelled() -> None:
    node, heard = Held(), Heard()
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(built("a>", nodes={"a": node})).run({}, None, listener=heard))
        await node.begun.wait()
        run.cancel()
    assert run.cancelled()
    assert [(each.status, each.stop_reason) for each in heard.outcomes] == [("cancelled", "aborted")]


async def test_an_aborted_run_gives_one_completion_and_returns() -> None:
    node, heard, control = Held(), Heard(), RunControl()
    graph = built("a>b", "b>", nodes={"a": node})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, listener=heard, control=control))
        await node.begun.wait()
        control.abort()
    assert (run.result().status, run.result().stop_reason) == ("cancelled", "aborted")
    assert run.result().quality == "failed"
    assert heard.outcomes == [run.result()]
    assert run.cancelling() == 0


async def test_a_run_aborted_beforehand_runs_no_node() -> None:
    control = RunControl()
    control.abort()
    run = await ran(built("a>"), control=control)
    assert (run.outcome.stop_reason, run.heard.started) == ("aborted", [])


@pytest.mark.parametrize("error", [None, ValueError("not now")])
async def test_a_node_that_swallows_an_abort_is_the_last_one(error: Exception | None) -> None:
    control, node = RunControl(), Stubborn(error)
    graph = built("a>b", "b>", nodes={"a": node})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, control=control))
        await node.begun.wait()
        control.abort()
    assert run.result().stop_reason == "aborted"
    assert node.times == 1
    assert "b" not in run.result().path


async def test_what_a_node_has_kept_survives_an_abort() -> None:
    begun, control = asyncio.Event(), RunControl()

    async def node(_state: State, _context: Any) -> NodeResult:
        current_step().keep({"draft": "half"})
        begun.set()
        await asyncio.Event().wait()
        return NodeResult()

    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(built("a>", nodes={"a": node})).run({}, None, control=control))
        await begun.wait()
        control.abort()
    assert run.result().state == {"draft": "half"}


async def test_a_pause_that_was_asked_for_halts_before_the_next_node() -> None:
    node, control = Held({"x": 1}), RunControl()
    graph = built("a>b", "b>", nodes={"a": node})
    async with asyncio.TaskGroup() as group:
        run = group.create_task(Executor(graph).run({}, None, control=control))
        await node.begun.wait()
        control.request_pause()
        node.release.set()
    outcome = run.result()
    assert (outcome.status, outcome.stop_reason) == ("paused", "pause_requested")
    assert (outcome.path, outcome.state) == (("a",), {"x": 1})


async def test_a_listener_that_raises_fails_the_run_with_one_completion() -> None:
    outcomes: list[RunOutcome] = []

    async def listener(event: GraphEvent) -> None:
        if isinstance(event, RunCompleted):
            outcomes.append(event.outcome)
        if isinstance(event, NodeEntered):
            raise OSError("the screen is gone")

    with pytest.raises(OSError, match="the screen is gone"):
        await Executor(built("a>")).run({}, None, listener=listener)
    assert [(outcome.status, outcome.stop_reason) for outcome in outcomes] == [("failed", "error")]


async def test_one_executor_serves_two_runs_at_once() -> None:
    async def node(state: State, context: str) -> NodeResult:
        await asyncio.sleep(0)
        return NodeResult(update={"who": state["name"] + context})

    executor: Executor[Any, State] = Executor(built("a>b", "b>", nodes={"a": node, "b": node}))
    async with asyncio.TaskGroup() as group:
        one = group.create_task(executor.run({"name": "x"}, "1"))
        two = group.create_task(executor.run({"name": "y"}, "2"))
    assert [each.result().state["who"] for each in (one, two)] == ["x1", "y2"]
    assert one.result().run_id != two.result().run_id


async def test_a_run_bears_the_name_it_is_given() -> None:
    assert (await ran(built("a>"), run_id="run-7")).outcome.run_id == "run-7"
