"""Stopping a run from outside: requested pauses, aborts, cancellations, deadlines, and what they keep."""

from __future__ import annotations

import asyncio

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import Continue, NodeResult, Pause, State
from pipeline.graph.definition.spec import GraphSpec, Limits, NodeSpec, RetryPolicy, append
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import GraphEvent, NodeLeft
from pipeline.graph.run.outcome import Answer, RunOutcome
from tests.pipeline.graph.running import Blocking, Events, Flaky, Writing, graph, in_time
from tests.support.graph_log import MemoryRunLog

TWICE = RetryPolicy(max_attempts=2, delay_s=0.0)


def _executor(built: GraphSpec[None, State], clock: ManualClock | None = None) -> Executor[None, State]:
    return Executor(built, clock=clock or ManualClock(), chance=lambda: 0.0)


class Keeping:
    """A node that keeps a part of its work, then waits; resumed, it finds the part and finishes."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.seen: list[State] = []

    async def __call__(self, state: State, _context: None) -> NodeResult:
        self.seen.append(dict(state))
        if "part" not in state:
            step = current_step()
            step.keep({"part": 0, "other": True})
            step.keep({"part": 1})
            self.begun.set()
            await asyncio.Event().wait()
        return NodeResult(update={"whole": state["part"] + 1})


async def _aborted(built: GraphSpec[None, State], begun: asyncio.Event, log: MemoryRunLog) -> RunOutcome:
    control, events = RunControl(), Events()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(built).run({}, None, control=control, log=log, listener=events))
        await begun.wait()
        control.abort()
    assert events.only_outcome() == running.result()
    return running.result()


async def test_an_abort_cuts_the_node_off_and_keeps_what_it_had_kept() -> None:
    node, after, log = Keeping(), Writing(), MemoryRunLog()
    built = graph({"a": Writing(x=1), "b": node, "c": after}, "a>b", "b>c")
    outcome = await _aborted(built, node.begun, log)
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("cancelled", "aborted", "failed")
    assert outcome.state == {"x": 1, "part": 1, "other": True}
    assert outcome.path == ("a",)
    assert outcome.error is None
    assert log.durable == len(log.texts) == 2
    outcome.raise_for_failure()

    resumed = await _executor(built).resume(log.records, None, log=log)
    assert resumed.status == "completed"
    assert resumed.path == ("a", "b", "c")
    assert resumed.state["whole"] == 2
    assert node.seen[1] == {"x": 1, "part": 1, "other": True}


async def test_what_was_kept_goes_through_the_channels() -> None:
    begun = asyncio.Event()

    async def node(_state: State, _context: None) -> NodeResult:
        current_step().keep({"said": ["half a sen"]})
        begun.set()
        await asyncio.Event().wait()
        return NodeResult()

    built = graph({"a": Writing(said=["hello"]), "b": node}, "a>b", channels={"said": append})
    outcome = await _aborted(built, begun, MemoryRunLog())
    assert outcome.state["said"] == ("hello", "half a sen")


@pytest.mark.parametrize("kept", [{"said": "no list"}, {"x": object()}])
async def test_what_could_not_be_kept_is_refused_while_the_node_can_still_say_so(kept: State) -> None:
    async def node(_state: State, _context: None) -> NodeResult:
        current_step().keep(kept)
        return NodeResult()

    outcome = await _executor(graph({"a": node}, channels={"said": append})).run({}, None)
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert isinstance(outcome.error.exception, GraphError)


async def test_a_result_replaces_what_was_kept() -> None:
    async def node(_state: State, _context: None) -> NodeResult:
        current_step().keep({"part": 1})
        return NodeResult(update={"whole": 2})

    outcome = await _executor(graph({"a": node})).run({}, None)
    assert outcome.state == {"whole": 2}


async def test_an_abort_before_the_run_runs_nothing() -> None:
    node, log, control, events = Writing(), MemoryRunLog(), RunControl(), Events()
    control.abort()
    built = graph({"a": node})
    outcome = await _executor(built).run({}, None, control=control, log=log, listener=events)
    assert (outcome.status, node.calls) == ("cancelled", 0)
    assert events.only_outcome() == outcome
    resumed = await _executor(built).resume(log.records, None)
    assert (resumed.status, node.calls) == ("completed", 1)


async def test_an_abort_twice_and_behind_the_end_does_nothing_more() -> None:
    node, log = Keeping(), MemoryRunLog()
    control = RunControl()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(graph({"a": node})).run({}, None, control=control, log=log))
        await node.begun.wait()
        control.abort()
        control.abort()
    control.abort()
    assert running.result().status == "cancelled"


async def test_an_abort_reaches_a_run_that_waits_for_its_next_attempt() -> None:
    clock, control, node, log = ManualClock(), RunControl(), Flaky(9), MemoryRunLog()
    built = graph({"a": node})
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(built, clock).run({}, None, control=control, log=log))
        await clock.advance(0.5)
        control.abort()
    assert (running.result().status, node.calls) == ("cancelled", 1)


async def test_what_a_failed_attempt_had_kept_does_not_outlive_it() -> None:
    clock, control = ManualClock(), RunControl()

    async def node(_state: State, _context: None) -> NodeResult:
        current_step().keep({"part": 1})
        raise ValueError

    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(graph({"a": node}), clock).run({}, None, control=control))
        await clock.advance(0.5)
        control.abort()
    assert running.result().state == {}


async def test_what_a_finished_node_had_kept_does_not_outlive_it() -> None:
    async def node(_state: State, _context: None) -> NodeResult:
        current_step().keep({"part": 1})
        return NodeResult()

    later = Blocking()
    outcome = await _aborted(graph({"a": node, "b": later}, "a>b"), later.begun, MemoryRunLog())
    assert outcome.state == {}


async def test_an_abort_before_resuming_takes_no_answer() -> None:
    log, control, built = MemoryRunLog(), RunControl(), graph({"ask": Writing(Pause())})
    paused = await _executor(built).run({}, None, log=log)
    answer = Answer(gate=paused.gates[0].id, choice="yes")
    control.abort()
    outcome = await _executor(built).resume(log.records, None, answers=[answer], log=log, control=control)
    assert (outcome.status, outcome.gates) == ("cancelled", paused.gates)
    assert [record["do"] for record in log.records if record] == ["step", "pause", "cancel"]
    assert (await _executor(built).resume(log.records, None, answers=[answer])).status == "completed"


@pytest.mark.parametrize("how", ["swallows", "replaces"])
async def test_a_node_cannot_outlive_an_abort(how: str) -> None:
    begun, calls, after, control = asyncio.Event(), list[int](), Writing(), RunControl()

    async def node(_state: State, _context: None) -> NodeResult:
        calls.append(1)
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if how == "replaces":
                raise ConnectionError("closed") from None
        return NodeResult(update={"x": 1})

    built, log = graph({"a": NodeSpec(run=node, retry=TWICE), "b": after}, "a>b"), MemoryRunLog()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(built).run({}, None, control=control, log=log))
        await begun.wait()
        control.abort()
    assert (running.result().status, running.result().retries) == ("cancelled", 0)
    assert (len(calls), after.calls) == (1, 0)
    assert running.result().failures == ()


async def test_an_abort_from_within_a_node_ends_the_run_behind_it() -> None:
    control, after = RunControl(), Writing()

    async def node(_state: State, _context: None) -> NodeResult:
        control.abort()
        return NodeResult(update={"x": 1})

    outcome = await _executor(graph({"a": node, "b": after}, "a>b")).run({}, None, control=control)
    assert (outcome.status, outcome.state, after.calls) == ("cancelled", {"x": 1}, 0)


async def test_an_abort_that_comes_behind_the_last_node_is_too_late() -> None:
    control, log = RunControl(), MemoryRunLog()
    reported = asyncio.Event()

    async def listener(event: GraphEvent) -> None:
        if isinstance(event, NodeLeft):
            reported.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(
            _executor(graph({"a": Writing(x=1)})).run({}, None, control=control, log=log, listener=listener)
        )
        await reported.wait()
        control.abort()
    assert (running.result().status, running.result().state) == ("completed", {"x": 1})
    assert [record["do"] for record in log.records if record] == ["step", "end"]


async def test_a_cancellation_from_outside_is_passed_on_and_keeps_what_was_kept() -> None:
    node, log, events = Keeping(), MemoryRunLog(), Events()
    built = graph({"a": Writing(x=1), "b": node}, "a>b")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(built).run({}, None, log=log, listener=events))
        await node.begun.wait()
        running.cancel()
    assert running.cancelled()
    outcome = events.only_outcome()
    assert (outcome.status, outcome.stop_reason) == ("cancelled", "aborted")
    assert outcome.state == {"x": 1, "part": 1, "other": True}
    resumed = await _executor(built).resume(log.records, None)
    assert resumed.state["whole"] == 2
    assert len(node.seen) == 2


async def test_a_cancellation_beside_an_abort_is_passed_on_too() -> None:
    node, control, events = Keeping(), RunControl(), Events()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(
            _executor(graph({"a": node})).run({}, None, control=control, listener=events)
        )
        await node.begun.wait()
        control.abort()
        running.cancel()
    assert running.cancelled()
    assert events.only_outcome().status == "cancelled"


async def test_a_requested_pause_finishes_the_node_and_halts_before_the_next() -> None:
    node, after, log, control = Blocking(b=1), Writing(c=1), MemoryRunLog(), RunControl()
    built = graph({"a": Writing(), "b": node, "c": after}, "a>b", "b>c")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(built).run({}, None, log=log, control=control))
        await node.begun.wait()
        control.request_pause()
        node.go.set()
    outcome = running.result()
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("paused", "pause_requested", "clean")
    assert (outcome.state, outcome.path, after.calls) == ({"b": 1}, ("a", "b"), 0)
    assert log.durable == len(log.texts)
    resumed = await _executor(built).resume(log.records, None)
    assert (resumed.status, resumed.path) == ("completed", ("a", "b", "c"))
    assert node.calls == 1


async def test_a_requested_pause_finishes_the_nodes_of_all_branches() -> None:
    left, right, log, control = Blocking(l=1), Blocking(r=1), MemoryRunLog(), RunControl()
    after = Writing()
    built = graph(
        {"a": Writing(), "l": left, "r": right, "rr": after, "z": Writing(z=1)},
        *("a>l", "a>r", "r>rr", "l>z", "rr>z"),
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(built).run({}, None, log=log, control=control))
        await left.begun.wait()
        control.request_pause()
        left.go.set()
        right.go.set()
    assert running.result().path == ("a", "l", "r")
    assert after.calls == 0
    resumed = await _executor(built).resume(log.records, None)
    assert (resumed.path, resumed.status) == (("a", "l", "r", "rr", "z"), "completed")
    assert resumed.state == {"l": 1, "r": 1, "z": 1}


async def test_a_pause_requested_beside_an_open_gate_leaves_the_gate_open() -> None:
    control = RunControl()

    async def asks(_state: State, _context: None) -> NodeResult:
        control.request_pause()
        return NodeResult(decision=Pause())

    outcome = await _executor(graph({"a": asks})).run({}, None, control=control)
    assert (outcome.status, outcome.stop_reason, len(outcome.gates)) == ("paused", "pause_requested", 1)


async def test_a_pause_requested_before_the_run_and_before_resuming_runs_nothing() -> None:
    node, control, log = Writing(), RunControl(), MemoryRunLog()
    control.request_pause()
    built = graph({"a": node})
    assert (await _executor(built).run({}, None, control=control, log=log)).status == "paused"
    assert (await _executor(built).resume(log.records, None, control=control, log=log)).status == "paused"
    assert node.calls == 0
    assert (await _executor(built).resume(log.records, None, log=log)).status == "completed"


async def test_a_pause_requested_in_the_last_node_comes_too_late() -> None:
    control = RunControl()

    async def node(_state: State, _context: None) -> NodeResult:
        control.request_pause()
        return NodeResult()

    assert (await _executor(graph({"a": node})).run({}, None, control=control)).status == "completed"


async def test_the_runs_deadline_keeps_partial_work_and_fails_the_run() -> None:
    clock, node, log, events = ManualClock(), Keeping(), MemoryRunLog(), Events()
    built = graph({"a": Writing(x=1), "b": node}, "a>b", limits=Limits(max_seconds=60.0))
    outcome = await in_time(clock, 61, _executor(built, clock).run({}, None, log=log, listener=events))
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("failed", "timeout", "failed")
    assert outcome.state == {"x": 1, "part": 1, "other": True}
    assert outcome.error is not None
    assert outcome.error.message == "the run took longer than 60 seconds"
    assert events.only_outcome() == outcome
    assert [record["do"] for record in log.records if record] == ["step", "cancel", "end"]


async def test_the_deadline_is_of_one_call() -> None:
    clock, log, control = ManualClock(), MemoryRunLog(), RunControl()

    async def slow(_state: State, _context: None) -> NodeResult:
        await clock.sleep(40)
        control.request_pause()
        return NodeResult()

    built = graph({"a": slow, "b": slow}, "a>b", limits=Limits(max_seconds=60.0))
    paused = await in_time(clock, 50, _executor(built, clock).run({}, None, log=log, control=control))
    assert paused.status == "paused"
    outcome = await in_time(clock, 50, _executor(built, clock).resume(log.records, None, log=log))
    assert outcome.status == "completed"


async def test_a_node_that_swallows_the_deadline_is_the_last_one() -> None:
    clock, after = ManualClock(), Writing()

    async def node(_state: State, _context: None) -> NodeResult:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return NodeResult(update={"x": 1})
        return NodeResult()

    built = graph({"a": node, "b": after}, "a>b", limits=Limits(max_seconds=60.0))
    outcome = await in_time(clock, 61, _executor(built, clock).run({}, None))
    assert (outcome.stop_reason, outcome.state, after.calls) == ("timeout", {"x": 1}, 0)


async def test_a_node_that_raises_its_own_timeout_does_not_look_like_the_runs() -> None:
    built = graph(
        {"a": NodeSpec(run=Flaky(9, TimeoutError("slow")), retry=TWICE)}, limits=Limits(max_seconds=60)
    )
    outcome = await _executor(built).run({}, None)
    assert (outcome.status, outcome.stop_reason) == ("failed", "error")


async def test_a_run_stops_where_a_node_runs_again_for_ever() -> None:
    node, control = Writing(Continue()), RunControl()
    built = graph({"a": node}, limits=Limits(max_consecutive=1000, max_steps=7))
    outcome = await _executor(built).run({}, None, control=control)
    assert (outcome.stop_reason, node.calls) == ("max_steps", 7)
