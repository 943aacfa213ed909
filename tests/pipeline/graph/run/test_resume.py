"""Continuing after a crash: from every record on, past damage, and what is refused."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import Goto, NodeResult, State
from pipeline.graph.definition.spec import END, GraphSpec, Limits, NodeSpec, RetryPolicy, When, append
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import NodeEntered
from pipeline.graph.run.outcome import RunOutcome
from pipeline.graph.run.records import GraphChanged, RunEnded, RunUnreadable
from tests.pipeline.graph.running import Blocking, Events, Flaky, Writing, graph, in_time
from tests.pipeline.graph.written import edge_of
from tests.support.graph_log import MemoryRunLog

TWICE = RetryPolicy(max_attempts=2, delay_s=0.0)


def _executor(built: GraphSpec[None, State]) -> Executor[None, State]:
    return Executor(built, clock=ManualClock())


async def _counts(state: State, _context: None) -> NodeResult:
    return NodeResult(update={"count": state.get("count", 0) + 1, "said": [state.get("count", 0)]})


def _whole() -> GraphSpec[None, State]:
    """A loop, a fan-out with branches of two nodes, a retry, a subgraph, a mapping."""
    inner = graph({"p": _counts, "q": _counts}, "p>q", channels={"said": append})
    return graph(
        {
            "a": _counts,
            "b": NodeSpec(run=_counts, max_visits=2),
            "left": _counts,
            "right": Writing(right=1),
            "far": Writing(far=1),
            "join": _counts,
            "inner": NodeSpec(subgraph=inner),
            "z": _counts,
        },
        "a>b",
        edge_of("b>a", When("count < 4")),
        "b>left",
        edge_of("b>right", mapping={"given": "count"}),
        *("left>join", "right>far", "far>join", "join>inner", "inner>z"),
        channels={"said": append},
    )


def _comparable(outcome: RunOutcome) -> dict[str, Any]:
    plain = {field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)}
    return plain | {"nodes": dict(outcome.nodes), "state": dict(outcome.state)}


async def test_a_run_that_crashes_behind_any_record_ends_like_one_that_does_not() -> None:
    built, log = _whole(), MemoryRunLog()
    whole = await _executor(built).run({"said": ["hello"]}, None, log=log, run_id="r")
    assert whole.status == "completed"
    assert len(log.texts) == 14
    for length in range(1, len(log.texts)):
        cut = log.cut(length)
        outcome = await _executor(built).resume(cut.records, None, log=cut)
        assert _comparable(outcome) == _comparable(whole), length
        again = await _replayed(built, cut)
        assert again == whole.state, length


async def _replayed(built: GraphSpec[None, State], log: MemoryRunLog) -> State:
    """The state as a second resume finds it, without the end."""
    outcome = await _executor(built).resume(log.cut(len(log.texts) - 1).records, None)
    return outcome.state


async def test_a_finished_node_is_not_run_again_and_an_unfinished_one_is() -> None:
    first, second, third = Writing(x=1), Blocking(y=1), Writing(z=1)
    built = graph({"a": first, "b": second, "c": third}, "a>b", "b>c")
    log = MemoryRunLog()
    async with asyncio.TaskGroup() as group:
        crashing = group.create_task(_executor(built).run({}, None, log=log))
        await second.begun.wait()
        records = log.records
        crashing.cancel()
    second.go.set()
    events = Events()
    outcome = await _executor(built).resume(records, None, listener=events)
    assert (first.calls, second.calls, third.calls) == (1, 2, 1)
    assert outcome.state == {"x": 1, "y": 1, "z": 1}
    assert outcome.path == ("a", "b", "c")
    assert [event.node for event in events.of(NodeEntered)] == ["b", "c"]
    assert events.only_outcome() == outcome


async def test_a_resumed_run_continues_in_the_same_log_under_the_same_name() -> None:
    built, log = graph({"a": Writing(), "b": Writing(), "c": Writing()}, "a>b", "b>c"), MemoryRunLog()
    await _executor(built).run({}, None, log=log, run_id="run-1")
    cut = log.cut(1)
    outcome = await _executor(built).resume(cut.records, None, log=cut)
    assert outcome.run_id == "run-1"
    assert cut.texts == log.texts
    assert cut.durable == 4


async def test_the_inputs_come_back_from_the_records_through_the_channels() -> None:
    last = Writing(said=["bye"])
    built = graph({"a": Writing(said=["yes"]), "b": last}, "a>b", channels={"said": append})
    log = MemoryRunLog()
    await _executor(built).run({"said": ["hello"]}, None, base={"said": ["before"]}, log=log)
    outcome = await _executor(built).resume(log.cut(1).records, None, base={"said": ["before"]})
    assert outcome.state["said"] == ("before", "hello", "yes", "bye")


async def test_the_base_state_is_not_on_record() -> None:
    log = MemoryRunLog()
    await _executor(graph({"a": Writing()})).run({}, None, base={"history": ["secret"]}, log=log)
    assert "secret" not in "".join(log.texts)


async def test_a_run_from_another_entry_is_resumed_from_there() -> None:
    node = Blocking()
    built = graph({"a": Writing(a=1), "b": node, "c": Writing()}, "a>b", "b>c", entry_points={"again": "b"})
    log = MemoryRunLog()
    node.go.set()
    await _executor(built).run({}, None, entry="again", log=log)
    outcome = await _executor(built).resume(log.cut(1).records, None)
    assert outcome.path == ("b", "c")


async def test_retries_before_a_crash_count_after_it() -> None:
    node = Flaky(9)
    built = graph({"a": Writing(), "b": NodeSpec(run=node, retry=RetryPolicy(delay_s=0.0))}, "a>b")
    log = MemoryRunLog()
    whole = await _executor(built).run({}, None, log=log)
    assert [record["do"] for record in log.records if record] == ["step", "retry", "retry", "step", "end"]
    node.calls = 0
    outcome = await _executor(built).resume(log.cut(3).records, None)
    assert node.calls == 1
    assert outcome.retries == whole.retries == 2
    assert outcome.error == whole.error


async def test_the_attempts_of_a_plain_node_before_a_crash_count_after_it() -> None:
    attempts: list[int] = []

    async def node(_state: State, _context: None) -> NodeResult:
        attempts.append(current_step().attempt)
        raise ValueError("boom")

    clock, log = ManualClock(), MemoryRunLog()
    built = graph({"a": Writing(), "b": node, "c": Writing()}, "a>b", "b>c")
    executor = Executor(built, clock=clock, chance=lambda: 0.0)
    await in_time(clock, 10, executor.run({}, None, log=log))
    outcome = await in_time(clock, 10, executor.resume(log.cut(2).records, None))
    assert attempts == [1, 2, 3, 2, 3]
    assert (outcome.path, outcome.retries) == (("a", "b", "c"), 2)


async def test_a_plain_nodes_inputs_come_back_after_a_crash() -> None:
    node, log = Writing(), MemoryRunLog()
    built = graph(
        {"a": Writing(x=1), "b": node, "c": Writing()}, edge_of("a>b", mapping={"given": "x"}), "b>c"
    )
    outcome = await _executor(built).run({}, None, log=log)
    await _executor(built).resume(log.cut(1).records, None)
    assert node.seen == [{"x": 1, "given": 1}] * 2
    assert outcome.state == {"x": 1}


async def test_a_run_goes_the_same_with_a_log_and_without() -> None:
    built = _whole()
    recorded = await _executor(built).run({"said": []}, None, run_id="r", log=MemoryRunLog())
    listened = await _executor(built).run({"said": []}, None, run_id="r", listener=Events())
    bare = await _executor(built).run({"said": []}, None, run_id="r")
    assert _comparable(bare) == _comparable(recorded) == _comparable(listened)
    assert bare.nodes["a"].executions == 2


async def test_visits_and_steps_before_a_crash_count_after_it() -> None:
    node = Writing()
    built = graph(
        {"a": NodeSpec(run=node, max_visits=3), "b": Writing()},
        "a>b",
        edge_of("b>a", When("more")),
        limits=Limits(max_steps=9),
    )
    log = MemoryRunLog()
    whole = await _executor(built).run({"more": True}, None, log=log)
    assert whole.stop_reason == "max_steps"
    calls = node.calls
    outcome = await _executor(built).resume(log.cut(5).records, None)
    assert outcome.path == whole.path
    assert node.calls == calls  # Its third and last visit was on record.
    assert outcome.stop_reason == "max_steps"


async def test_executions_of_one_node_in_a_row_count_over_a_crash() -> None:
    async def again(_state: State, _context: None) -> NodeResult:
        return NodeResult(decision=Goto("a"))

    built = graph({"a": again}, limits=Limits(max_consecutive=5))
    log = MemoryRunLog()
    await _executor(built).run({}, None, log=log)
    outcome = await _executor(built).resume(log.cut(3).records, None)
    assert (outcome.stop_reason, len(outcome.path)) == ("max_loops", 5)


@pytest.mark.parametrize(
    "damage", ["", "{", '"text"', '{"do": "step", "node": "z"}', '{"do": "dance"}', "[]"]
)
async def test_a_newest_record_that_cannot_be_read_is_passed_over(damage: str) -> None:
    nodes = {name: Writing(None, **{name: 1}) for name in "abcd"}
    built, log = graph(nodes, "a>b", "b>c", "c>d"), MemoryRunLog()
    whole = await _executor(built).run({}, None, log=log)
    crashed = log.cut(3).damaged(2, damage)
    outcome = await _executor(built).resume(crashed.records, None, log=crashed)
    assert [node.calls for node in nodes.values()] == [1, 1, 2, 2]
    assert outcome.state == whole.state
    assert outcome.path == whole.path


async def test_what_is_behind_a_damaged_record_is_void_for_ever() -> None:
    nodes = {name: Writing(None, **{name: 1}) for name in "abcd"}
    built, log = graph(nodes, "a>b", "b>c", "c>d"), MemoryRunLog()
    await _executor(built).run({}, None, log=log)
    crashed = log.cut(3).damaged(1, "}")
    await _executor(built).resume(crashed.records, None, log=crashed)
    assert {"do": "resume", "kept": 1} in crashed.records
    # A second crash, behind b of the second try:
    cut = crashed.cut(5)
    outcome = await _executor(built).resume(cut.records, None, log=cut)
    assert [node.calls for node in nodes.values()] == [1, 2, 3, 3]
    assert outcome.path == tuple("abcd")
    with pytest.raises(RunEnded):
        await _executor(built).resume(cut.records, None)


async def test_a_run_voided_from_its_start_keeps_its_head() -> None:
    built, log = graph({"a": Writing(a=1), "b": Writing(b=1)}, "a>b"), MemoryRunLog()
    await _executor(built).run({"said": "hello"}, None, log=log, run_id="run-1")
    first = json.loads(log.texts[0]) | {"node": "b"}
    crashed = log.cut(1).damaged(0, json.dumps(first))
    outcome = await _executor(built).resume(crashed.records, None, log=crashed)
    assert outcome.path == ("a", "b")
    again = await _executor(built).resume(crashed.cut(3).records, None)
    assert (again.run_id, again.path, again.state) == ("run-1", ("a", "b"), outcome.state)


@pytest.mark.parametrize(
    "texts", [[], ["{"], ['{"do": "step", "node": "a"}'], ['{"do": "step", "node": "a", "head": {"run": 1}}']]
)
async def test_a_run_without_a_readable_beginning_is_refused(texts: list[str]) -> None:
    with pytest.raises(RunUnreadable):
        await _executor(graph({"a": Writing()})).resume(MemoryRunLog(texts).records, None)


async def test_a_run_of_another_graph_is_refused_in_words_and_continues_by_force() -> None:
    node = Writing(b=1)
    old = graph({"a": Writing(a=1), "b": node}, "a>b")
    new = graph({"a": Writing(a=1), "b": node, "c": Writing(c=1)}, "a>b", "b>c")
    log = MemoryRunLog()
    await _executor(old).run({}, None, log=log)
    with pytest.raises(GraphChanged, match=f"{old.signature}.*{new.signature}.*force"):
        await _executor(new).resume(log.cut(1).records, None)
    outcome = await _executor(new).resume(log.cut(1).records, None, force=True)
    assert outcome.path == ("a", "b", "c")


async def test_a_run_that_is_at_a_node_that_is_gone_goes_back_when_forced() -> None:
    old = graph({"a": Writing(a=1), "b": Writing()}, "a>b")
    new = graph({"a": Writing(a=1), "c": Writing(c=1)}, "a>c")
    log = MemoryRunLog()
    await _executor(old).run({}, None, log=log)
    outcome = await _executor(new).resume(log.cut(1).records, None, force=True)
    assert outcome.path == ("a", "c")


async def test_a_run_inside_a_subgraph_that_is_gone_goes_back_when_forced() -> None:
    inner = graph({"p": Writing(), "q": Writing()}, "p>q")
    old = graph({"a": Writing(a=1), "b": NodeSpec(subgraph=inner)}, "a>b")
    new = graph({"a": Writing(a=1), "b": Writing(b=1)}, "a>b")
    log = MemoryRunLog()
    await _executor(old).run({}, None, log=log)
    outcome = await _executor(new).resume(log.cut(3).records, None, force=True)
    assert outcome.path == ("a", "b")


async def test_limits_and_retries_may_change_between_two_calls() -> None:
    old, log = graph({"a": Writing(), "b": Writing()}, "a>b"), MemoryRunLog()
    await _executor(old).run({}, None, log=log)
    new = graph(
        {"a": Writing(), "b": NodeSpec(run=Writing(), retry=TWICE)}, "a>b", limits=Limits(max_steps=2)
    )
    assert (await _executor(new).resume(log.cut(1).records, None)).status == "completed"


@pytest.mark.parametrize("ending", ["completed", "failed"])
async def test_a_run_that_has_ended_is_not_resumed(ending: str) -> None:
    node = Writing() if ending == "completed" else Flaky(9, GraphError("no"))
    built, log, events = graph({"a": node}), MemoryRunLog(), Events()
    assert (await _executor(built).run({}, None, log=log)).status == ending
    with pytest.raises(RunEnded):
        await _executor(built).resume(log.records, None, listener=events)
    assert events.heard == []


async def test_a_run_whose_end_alone_is_missing_is_ended_without_running_anything() -> None:
    node = Writing(x=1)
    built, log = graph({"a": Writing(), "b": node}, "a>b"), MemoryRunLog()
    whole = await _executor(built).run({}, None, log=log)
    cut = log.cut(2)
    outcome = await _executor(built).resume(cut.records, None, log=cut)
    assert node.calls == 1
    assert _comparable(outcome) == _comparable(whole)
    assert cut.texts == log.texts


async def test_a_nodes_first_visit_is_still_its_first_after_a_crash() -> None:
    visits: list[tuple[int, object]] = []

    async def node(state: State, _context: None) -> NodeResult:
        visits.append((current_step().execution, state.get("draft")))
        return NodeResult(update={"draft": "new"})

    spec = NodeSpec[None](run=node, writes=("draft",), nullable=("draft",))
    built, log = graph({"a": Writing(draft="old"), "b": spec}, "a>b", edge_of(f"b>{END}")), MemoryRunLog()
    await _executor(built).run({}, None, log=log)
    await _executor(built).resume(log.cut(1).records, None)
    assert visits == [(1, "old"), (1, "old")]
