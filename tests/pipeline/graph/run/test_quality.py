"""How well a run went: clean, degraded, failed, and what the outcome says of each node."""

from __future__ import annotations

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.definition.decisions import Continue, End, NodeResult, Pause, State
from pipeline.graph.definition.spec import (
    FanOut,
    GraphSpec,
    Limits,
    NodeSpec,
    OnFailure,
    OnSuccess,
    RetryPolicy,
    When,
)
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import Answer
from tests.pipeline.graph.running import Blocking, Flaky, Writing, graph, in_time
from tests.pipeline.graph.written import edge_of
from tests.support.graph_log import MemoryRunLog

ONCE = RetryPolicy(max_attempts=1)
TWICE = RetryPolicy(max_attempts=2, delay_s=0.0)


def _executor(built: GraphSpec[None, State]) -> Executor[None, State]:
    return Executor(built, clock=ManualClock())


async def test_a_run_without_failure_and_retry_is_clean() -> None:
    outcome = await _executor(graph({"a": Writing(x=1), "b": Writing()}, "a>b")).run({}, None)
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("completed", "completed", "clean")
    assert outcome.failures == ()
    assert outcome.retries == 0
    assert outcome.error is None
    outcome.raise_for_failure()


async def test_a_retried_node_makes_the_run_degraded() -> None:
    outcome = await _executor(graph({"a": NodeSpec(run=Flaky(1), retry=TWICE)})).run({}, None)
    assert (outcome.status, outcome.quality) == ("completed", "degraded")


async def test_a_failure_that_an_edge_rescues_makes_the_run_degraded() -> None:
    built = graph(
        {"a": NodeSpec(run=Flaky(9), retry=ONCE), "b": Writing()},
        edge_of("a>b", OnFailure()),
        terminals=("b",),
    )
    outcome = await _executor(built).run({}, None)
    assert (outcome.status, outcome.quality, outcome.retries) == ("completed", "degraded", 0)
    assert [failure.node for failure in outcome.failures] == ["a"]
    assert outcome.error is None


async def test_an_always_edge_rescues_a_failed_node_too() -> None:
    outcome = await _executor(graph({"a": NodeSpec(run=Flaky(9), retry=ONCE), "b": Writing()}, "a>b")).run(
        {}, None
    )
    assert (outcome.status, outcome.quality, outcome.path) == ("completed", "degraded", ("a", "b"))


async def test_an_event_loop_node_that_is_rescued_makes_the_run_degraded() -> None:
    spec = NodeSpec(run=Flaky(9), event_loop=True)
    outcome = await _executor(graph({"a": spec, "b": Writing()}, edge_of("a>b", OnFailure()))).run({}, None)
    assert (outcome.quality, outcome.retries) == ("degraded", 0)


async def test_a_failure_that_nothing_rescues_fails_the_run_with_the_nodes_own_error() -> None:
    error = ValueError("boom")
    built = graph(
        {"a": Writing(x=1), "b": NodeSpec(run=Flaky(9, error), retry=ONCE), "c": Writing()},
        "a>b",
        edge_of("b>c", OnSuccess()),
    )
    outcome = await _executor(built).run({}, None)
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("failed", "error", "failed")
    assert outcome.state == {"x": 1}
    assert outcome.path == ("a", "b")
    assert outcome.error is not None
    assert (outcome.error.node, outcome.error.exception) == ("b", error)
    assert outcome.failures == (outcome.error,)
    with pytest.raises(ValueError, match="boom"):
        outcome.raise_for_failure()


async def test_a_recovery_that_fails_as_well_fails_the_run() -> None:
    built = graph(
        {"a": NodeSpec(run=Flaky(9), retry=ONCE), "b": NodeSpec(run=Flaky(9), retry=ONCE)},
        edge_of("a>b", OnFailure()),
    )
    outcome = await _executor(built).run({}, None)
    assert (outcome.quality, [failure.node for failure in outcome.failures]) == ("failed", ["a", "b"])


async def test_the_end_of_the_steps_is_a_failure() -> None:
    built = graph(
        {"a": Writing(), "b": Writing()}, "a>b", edge_of("b>a", When("more")), limits=Limits(max_steps=5)
    )
    outcome = await _executor(built).run({"more": True}, None)
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("failed", "max_steps", "failed")
    assert len(outcome.path) == 5
    assert outcome.error is not None
    assert outcome.error.code == "max_steps"


async def test_too_many_runs_of_one_node_are_a_failure() -> None:
    built = graph({"a": Writing(Continue())}, limits=Limits(max_consecutive=3))
    outcome = await _executor(built).run({}, None)
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("failed", "max_loops", "failed")


async def test_an_end_that_is_no_terminal_is_a_failure_where_terminals_are_declared() -> None:
    built = graph({"a": Writing(), "b": Writing()}, edge_of("a>b", When("go")), terminals=("b",))
    outcome = await _executor(built).run({}, None)
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("failed", "no_terminal", "failed")
    reached = await _executor(built).run({"go": True}, None)
    assert (reached.status, reached.quality) == ("completed", "clean")


@pytest.mark.parametrize("reason", ["waiting_for_user", "blocked"])
async def test_a_node_says_why_it_ends_the_run(reason: str) -> None:
    node = Writing(End("blocked") if reason == "blocked" else End("waiting_for_user"))
    outcome = await _executor(graph({"a": node})).run({}, None)
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("completed", reason, "clean")


async def test_a_branch_that_failed_and_was_left_behind_makes_the_run_degraded() -> None:
    built = graph(
        {"a": Writing(), "b": NodeSpec(run=Flaky(9), retry=ONCE), "c": Writing(), "d": Writing()},
        *("a>b", "a>c", edge_of("b>d", OnSuccess()), "c>d"),
        fan_out=FanOut(on_failure="continue_others"),
    )
    outcome = await _executor(built).run({}, None)
    assert (outcome.status, outcome.quality) == ("completed", "degraded")
    assert [failure.node for failure in outcome.failures] == ["b"]


async def test_a_branch_that_took_too_long_makes_the_run_degraded() -> None:
    clock = ManualClock()
    built = graph(
        {"a": Writing(), "b": Blocking(), "c": Writing(), "d": Writing()},
        *("a>b", "a>c", edge_of("b>d", OnSuccess()), "c>d"),
        fan_out=FanOut(on_failure="continue_others", branch_timeout_s=5.0),
    )
    outcome = await in_time(clock, 6, Executor(built, clock=clock).run({}, None))
    assert (outcome.status, outcome.quality) == ("completed", "degraded")
    assert [(failure.node, failure.code) for failure in outcome.failures] == [("b", "timeout")]


async def test_a_paused_run_is_as_good_as_it_was_so_far() -> None:
    clean = await _executor(graph({"a": Writing(Pause())})).run({}, None)
    assert (clean.status, clean.quality) == ("paused", "clean")
    built = graph({"a": NodeSpec(run=Flaky(1), retry=TWICE), "b": Writing(Pause())}, "a>b")
    degraded = await _executor(built).run({}, None)
    assert (degraded.status, degraded.quality) == ("paused", "degraded")


async def test_an_aborted_run_has_failed_in_quality() -> None:
    control = RunControl()
    control.abort()
    outcome = await _executor(graph({"a": Writing()})).run({}, None, control=control)
    assert (outcome.status, outcome.quality) == ("cancelled", "failed")


async def test_failures_and_retries_from_before_a_pause_count_after_it() -> None:
    log = MemoryRunLog()
    built = graph(
        {
            "a": NodeSpec(run=Flaky(1), retry=TWICE),
            "b": NodeSpec(run=Flaky(9), retry=ONCE),
            "c": Writing(Pause()),
            "d": Writing(),
        },
        *("a>b", edge_of("b>c", OnFailure()), "c>d"),
    )
    paused = await _executor(built).run({}, None, log=log)
    outcome = await _executor(built).resume(
        log.records, None, answers=[Answer(gate=paused.gates[0].id, choice="yes")]
    )
    assert (outcome.status, outcome.quality, outcome.retries) == ("completed", "degraded", 1)
    assert [failure.node for failure in outcome.failures] == ["b"]
    assert outcome.nodes["a"].attempts == 2
    assert outcome.path == ("a", "b", "c", "d")


async def test_the_outcome_counts_visits_attempts_seconds_and_decisions_of_each_node() -> None:
    clock = ManualClock()

    async def slow(state: State, _context: None) -> NodeResult:
        await clock.sleep(1.5)
        count = state.get("count", 0) + 1
        return NodeResult(update={"count": count}, decision=Continue() if count < 3 else End("blocked"))

    spec = NodeSpec[None](run=slow, reads=("count", "extra"))
    outcome = await in_time(clock, 10, Executor(graph({"a": spec}), clock=clock).run({}, None))
    node = outcome.nodes["a"]
    assert (node.executions, node.attempts, node.seconds, node.decision) == (3, 3, 4.5, "end blocked")
    assert node.missing_inputs == ("extra",)


async def test_a_condition_that_could_not_be_evaluated_is_in_the_outcome() -> None:
    built = graph(
        {"a": Writing(x="text"), "b": Writing()}, edge_of("a>b", When("x < 1")), edge_of("a>", OnSuccess())
    )
    outcome = await _executor(built).run({}, None)
    assert len(outcome.nodes["a"].edge_errors) == 1
    assert outcome.nodes["a"].edge_errors[0].startswith("b: ")
    assert outcome.quality == "clean"


async def test_waits_between_attempts_are_not_time_in_the_node() -> None:
    clock = ManualClock()
    executor = Executor(graph({"a": Flaky(1)}), clock=clock, chance=lambda: 0.0)
    outcome = await in_time(clock, 10, executor.run({}, None))
    assert outcome.nodes["a"].seconds == 0.0


async def test_nodes_of_the_same_outcome_do_not_change_afterwards() -> None:
    log = MemoryRunLog()
    built = graph({"a": Writing(Pause(), x=1), "b": Writing(x=2)}, "a>b")
    paused = await _executor(built).run({}, None, log=log)
    await _executor(built).resume(log.records, None, answers=[Answer(gate=paused.gates[0].id, choice="y")])
    assert paused.state == {"x": 1}
    assert paused.nodes.keys() == {"a"}
