"""The executor's retries: how often, after which waits, of what, and how they are counted.

Covers: pipeline/graph/execution/node_attempts.py.
"""

from __future__ import annotations

import asyncio

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ModelRejected, ModelUnavailable
from pipeline.graph.definition.decisions import Goto, NodeResult, State
from pipeline.graph.definition.spec import GraphSpec, NodeSpec, OnFailure, OnSuccess, RetryPolicy
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import NodeRetried
from tests.pipeline.graph.running import Events, Flaky, Writing, graph, in_time
from tests.pipeline.graph.written import edge_of
from tests.support.graph_log import MemoryRunLog

NO_WAIT = RetryPolicy(delay_s=0.0)


def _executor(built: GraphSpec[None, State], clock: ManualClock | None = None) -> Executor[None, State]:
    return Executor(built, clock=clock or ManualClock(), chance=lambda: 0.0)


async def test_by_default_a_node_is_executed_three_times_with_waits_of_one_and_two_seconds() -> None:
    clock = ManualClock()
    node = Flaky(99, clock=clock)
    outcome = await in_time(clock, 100, _executor(graph({"a": node}), clock).run({}, None))
    assert node.times == [0, 1, 3]
    assert outcome.status == "failed"
    assert outcome.retries == 2
    assert outcome.error is not None
    assert outcome.error.attempts == 3
    assert outcome.nodes["a"].attempts == 3
    assert outcome.nodes["a"].executions == 1


async def test_a_node_that_succeeds_the_second_time_is_not_tried_again() -> None:
    clock = ManualClock()
    node = Flaky(1, clock=clock)
    outcome = await in_time(clock, 100, _executor(graph({"a": node}), clock).run({}, None))
    assert node.times == [0, 1]
    assert (outcome.status, outcome.quality, outcome.retries) == ("completed", "degraded", 1)
    assert outcome.failures == ()
    assert outcome.state["flaky"] == 2


@pytest.mark.parametrize("attempts", [1, 2, 5])
async def test_each_node_says_how_often_it_is_tried(attempts: int) -> None:
    node, other = Flaky(99), Flaky(99)
    built = graph(
        {
            "a": NodeSpec(run=node, retry=RetryPolicy(max_attempts=attempts, delay_s=0.0)),
            "b": NodeSpec(run=other, retry=NO_WAIT),
        },
        edge_of("a>b", OnFailure()),
    )
    await _executor(built).run({}, None)
    assert (node.calls, other.calls) == (attempts, 3)


async def test_the_waits_follow_the_policy_up_to_its_longest() -> None:
    clock = ManualClock()
    node = Flaky(99, clock=clock)
    policy = RetryPolicy(max_attempts=5, delay_s=2.0, factor=3.0, max_delay_s=10.0)
    await in_time(clock, 100, _executor(graph({"a": NodeSpec(run=node, retry=policy)}), clock).run({}, None))
    assert node.times == [0, 2, 8, 18, 28]


async def test_chance_stretches_a_wait_by_the_share_that_the_policy_names() -> None:
    clock = ManualClock()
    node = Flaky(99, clock=clock)
    policy = RetryPolicy(jitter=0.5)
    executor = Executor(
        graph({"a": NodeSpec(run=node, retry=policy)}), clock=clock, chance=iter((0.5, 1.0)).__next__
    )
    await in_time(clock, 100, executor.run({}, None))
    assert node.times == [0, 1.25, 4.25]


async def test_a_failed_result_is_tried_again_like_an_exception() -> None:
    calls: list[int] = []

    async def node(_state: State, _context: None) -> NodeResult:
        calls.append(len(calls))
        return NodeResult(update={"x": 1}, error="not yet" if len(calls) < 3 else "")

    outcome = await _executor(graph({"a": NodeSpec(run=node, retry=NO_WAIT)})).run({}, None)
    assert len(calls) == 3
    assert outcome.status == "completed"
    assert outcome.retries == 2


async def test_a_failed_result_drops_its_update_and_gives_its_own_reason() -> None:
    async def node(_state: State, _context: None) -> NodeResult:
        return NodeResult(update={"undeclared": 1}, error="no money left")

    spec = NodeSpec[None](run=node, retry=NO_WAIT, writes=("x",))
    outcome = await _executor(graph({"a": spec})).run({}, None)
    assert outcome.error is not None
    assert outcome.error.code == "node_error"
    assert outcome.error.message == "no money left"
    assert outcome.error.attempts == 3
    assert outcome.state == {}


async def test_a_permanent_failed_result_is_not_tried_again() -> None:
    calls: list[int] = []

    async def node(_state: State, _context: None) -> NodeResult:
        calls.append(1)
        return NodeResult(error="never", permanent=True)

    outcome = await _executor(graph({"a": node})).run({}, None)
    assert len(calls) == 1
    assert outcome.error is not None
    assert outcome.error.permanent


@pytest.mark.parametrize(("error", "calls"), [(ModelRejected("bad key"), 1), (ModelUnavailable("503"), 3)])
async def test_errors_that_call_themselves_permanent_are_not_tried_again(
    error: Exception, calls: int
) -> None:
    node = Flaky(99, error)
    outcome = await _executor(graph({"a": NodeSpec(run=node, retry=NO_WAIT)})).run({}, None)
    assert node.calls == calls
    assert outcome.error is not None
    assert outcome.error.code == getattr(error, "code", "")
    assert outcome.error.exception is error


async def test_only_the_errors_that_the_policy_covers_are_tried_again() -> None:
    covered, other = Flaky(1, ConnectionError()), Flaky(1, ValueError())
    policy = RetryPolicy(delay_s=0.0, retry_on=(OSError,))
    built = graph({"a": NodeSpec(run=covered, retry=policy), "b": NodeSpec(run=other, retry=policy)}, "a>b")
    outcome = await _executor(built).run({}, None)
    assert (covered.calls, other.calls) == (2, 1)
    assert outcome.status == "failed"


async def test_an_answer_that_breaks_its_declaration_is_not_tried_again() -> None:
    node = Writing(other=1)
    outcome = await _executor(graph({"a": NodeSpec(run=node, writes=("x",))})).run({}, None)
    assert node.calls == 1
    assert outcome.error is not None
    assert outcome.error.code == "undeclared_write"


async def test_an_event_loop_node_is_executed_once_whatever_its_policy_says() -> None:
    node = Flaky(99)
    spec = NodeSpec(run=node, event_loop=True, retry=RetryPolicy(max_attempts=9))
    outcome = await _executor(graph({"a": spec})).run({}, None)
    assert node.calls == 1
    assert outcome.retries == 0


async def test_an_event_loop_node_is_executed_once_in_a_branch_too() -> None:
    node = Flaky(99)
    built = graph(
        {"a": Writing(), "b": NodeSpec(run=node, event_loop=True), "c": Writing(), "d": Writing()},
        *("a>b", "a>c", "b>d", "c>d"),
    )
    await _executor(built).run({}, None)
    assert node.calls == 1


async def test_each_visit_has_all_its_attempts() -> None:
    seen: list[tuple[int, int]] = []

    async def node(_state: State, _context: None) -> NodeResult:
        step = current_step()
        seen.append((step.execution, step.attempt))
        if step.attempt < 3:
            raise ValueError
        return NodeResult()

    async def again(state: State, _context: None) -> NodeResult:
        return NodeResult(update={"again": True}, decision=Goto("end" if state.get("again") else "a"))

    built = graph({"a": NodeSpec(run=node, retry=NO_WAIT), "b": again}, "a>b")
    outcome = await _executor(built).run({}, None)
    assert seen == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert outcome.status == "completed"
    assert outcome.retries == 4
    assert outcome.nodes["a"].attempts == 6


async def test_every_attempt_sees_the_state_as_it_was_before_the_first() -> None:
    node = Flaky(2)
    await _executor(graph({"a": NodeSpec(run=node, retry=NO_WAIT)})).run({"x": 1}, None)
    assert node.seen == [{"x": 1}] * 3


async def test_what_a_failed_attempt_kept_does_not_enter_the_state() -> None:
    async def node(_state: State, _context: None) -> NodeResult:
        step = current_step()
        if step.attempt == 1:
            step.keep({"partial": 1})
            raise ValueError
        assert dict(step.kept) == {}
        return NodeResult(update={"x": 1})

    outcome = await _executor(graph({"a": NodeSpec(run=node, retry=NO_WAIT)})).run({}, None)
    assert outcome.state == {"x": 1}


async def test_retries_do_not_count_as_steps() -> None:
    node = Flaky(2)
    built = graph({"a": NodeSpec(run=node, retry=NO_WAIT), "b": Writing(done=1)}, "a>b")
    outcome = await _executor(built).run({}, None)
    assert outcome.path == ("a", "b")


async def test_a_retry_is_reported_and_recorded_before_the_wait() -> None:
    clock, events, log = ManualClock(), Events(), MemoryRunLog()
    node = Flaky(1, clock=clock)
    executor = _executor(graph({"a": node}), clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(executor.run({}, None, listener=events, log=log))
        await clock.advance(0.5)
        assert [event.delay_s for event in events.of(NodeRetried)] == [1.0]
        assert [record["do"] for record in log.records if record] == ["retry"]
        await clock.advance(0.5)
    retried = events.of(NodeRetried)[0]
    assert (retried.node, retried.attempt, retried.failure.message) == ("a", 1, "boom")
    first = log.records[0]
    assert first is not None
    assert first["error"]["message"] == "boom"


async def test_a_cancellation_is_not_tried_again() -> None:
    begun = asyncio.Event()
    calls: list[int] = []

    async def node(_state: State, _context: None) -> NodeResult:
        calls.append(1)
        begun.set()
        await asyncio.Event().wait()
        return NodeResult()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(_executor(graph({"a": node})).run({}, None))
        await begun.wait()
        running.cancel()
    assert running.cancelled()
    assert len(calls) == 1


async def test_an_attempt_over_its_deadline_is_tried_again_with_a_whole_deadline() -> None:
    clock = ManualClock()
    times: list[float] = []

    async def node(_state: State, _context: None) -> NodeResult:
        times.append(clock.monotonic())
        await asyncio.Event().wait()
        return NodeResult()

    built = graph({"a": NodeSpec(run=node, timeout_s=10.0)})
    outcome = await in_time(clock, 100, _executor(built, clock).run({}, None))
    assert times == [0, 11, 23]
    assert outcome.error is not None
    assert outcome.error.code == "timeout"
    assert "a took longer than 10 seconds" in outcome.error.message
    assert outcome.nodes["a"].seconds == 30.0


async def test_a_timeout_of_the_nodes_own_is_its_own_error() -> None:
    clock = ManualClock()
    node = Flaky(99, TimeoutError("upstream was slow"))
    built = graph({"a": NodeSpec(run=node, timeout_s=10.0, retry=NO_WAIT)})
    outcome = await in_time(clock, 1, _executor(built, clock).run({}, None))
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message) == ("node_error", "upstream was slow")


async def test_the_recovery_begins_only_when_no_attempt_is_left() -> None:
    node, rescue = Flaky(99), Writing(rescued=True)
    built = graph({"a": NodeSpec(run=node, retry=NO_WAIT), "b": rescue}, edge_of("a>b", OnFailure()))
    outcome = await _executor(built).run({}, None)
    assert node.calls == 3
    assert rescue.seen[0]["failure"] == {
        "node": "a",
        "code": "node_error",
        "message": "boom",
        "attempts": 3,
    }
    assert outcome.status == "completed"
    assert "failure" not in outcome.state


async def test_a_cancelled_sibling_that_breaks_while_it_cleans_up_is_not_tried_again() -> None:
    begun = asyncio.Event()
    calls: list[int] = []

    async def sibling(_state: State, _context: None) -> NodeResult:
        calls.append(1)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("the connection was gone")

    async def failing(_state: State, _context: None) -> NodeResult:
        await begun.wait()
        return NodeResult(error="first to fail", permanent=True)

    built = graph(
        {
            "a": Writing(),
            "b": NodeSpec(run=sibling, retry=NO_WAIT),
            "c": failing,
            "d": Writing(),
        },
        "a>b",
        "a>c",
        *(edge_of(arrow, OnSuccess()) for arrow in ("b>d", "c>d")),
    )
    outcome = await _executor(built).run({}, None)
    assert calls == [1]
    assert outcome.error is not None
    assert outcome.error.message == "first to fail"
