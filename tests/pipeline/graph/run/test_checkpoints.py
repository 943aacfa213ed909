"""What is recorded when, and what a log that fails does to a run.

Covers: pipeline/graph/run/records.py.
"""

from __future__ import annotations

import contextlib
import json

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import Continue, Goto, NodeResult, Pause, State
from pipeline.graph.definition.spec import (
    EdgeSpec,
    FanOut,
    GraphSpec,
    NodeSpec,
    OnFailure,
    RetryPolicy,
    Route,
)
from pipeline.graph.execution.control import RunControl
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import Checkpointed, GraphEvent, RunCompleted
from tests.pipeline.graph.running import Events, Flaky, Writing, graph
from tests.pipeline.graph.written import edge_of
from tests.support.graph_log import LogBroken, MemoryRunLog

TWICE = RetryPolicy(max_attempts=2, delay_s=0.0)


def _executor(built: GraphSpec[None, State]) -> Executor[None, State]:
    return Executor(built, clock=ManualClock())


def _kinds(log: MemoryRunLog) -> list[tuple[str, str]]:
    return [(record["do"], record.get("node", "")) for record in log.records if record is not None]


async def test_every_finished_node_is_a_record_and_the_first_one_has_the_head() -> None:
    log = MemoryRunLog()
    built = graph({"a": Writing(x=1), "b": Writing(x=2)}, "a>b")
    outcome = await _executor(built).run({"said": "hello"}, None, log=log, run_id="run-1")
    assert _kinds(log) == [("step", "a"), ("step", "b"), ("end", "")]
    first, second, end = log.records
    assert first is not None
    assert second is not None
    assert end is not None
    assert first["head"] == {
        "run": "run-1",
        "graph": "g",
        "signature": built.signature,
        "entry": "",
        "inputs": {"said": "hello"},
    }
    assert first["update"] == {"x": 1}
    assert "head" not in second
    assert (end["status"], end["reason"]) == ("completed", "completed")
    assert log.durable == 3
    assert outcome.run_id == "run-1"


async def test_a_run_without_a_name_gets_its_own() -> None:
    built = graph({"a": Writing()})
    first = await _executor(built).run({}, None)
    second = await _executor(built).run({}, None)
    assert first.run_id != second.run_id != ""


async def test_the_last_node_and_the_end_are_handed_over_together() -> None:
    class Finishing(MemoryRunLog):
        finished: tuple[str, ...] = ()

        async def finish(self, records: object) -> None:
            assert isinstance(records, list)
            self.finished = tuple(record["do"] for record in records)
            await super().finish(records)

    log = Finishing()
    await _executor(graph({"a": Writing(), "b": Writing()}, "a>b")).run({}, None, log=log)
    assert log.finished == ("step", "end")


@pytest.mark.parametrize("way", ["fan-out", "route", "terminal", "failure", "jump", "continue"])
async def test_a_finished_node_is_recorded_on_every_way_out_of_it(way: str) -> None:
    nodes = {"a": Writing(), "b": Writing(), "c": Writing()}
    built = {
        "fan-out": graph(nodes, "a>b", "a>c"),
        "route": graph(nodes, EdgeSpec(source="a", when=Route(lambda _: "b", ("b", "c")))),
        "terminal": graph({"a": Writing()}, terminals=("a",)),
        "failure": graph({"a": Flaky(9, GraphError("no")), "b": Writing()}, edge_of("a>b", OnFailure())),
        "jump": graph({"a": Writing(Goto("b")), "b": Writing()}, "a>b"),
        "continue": graph({"a": NodeSpec(run=Writing(Continue()), max_visits=2)}),
    }[way]
    log, events = MemoryRunLog(), Events()
    await _executor(built).run({}, None, log=log, listener=events)
    assert ("step", "a") in _kinds(log)
    assert Checkpointed("node_complete", "a") in events.heard


async def test_a_checkpoint_is_reported_when_the_record_is_with_the_log() -> None:
    log = MemoryRunLog()
    seen: list[tuple[str, str, int]] = []

    async def listener(event: GraphEvent) -> None:
        if isinstance(event, Checkpointed):
            seen.append((event.kind, event.node, len(log.texts)))

    built = graph({"a": Writing(), "b": Writing(Pause())}, "a>b")
    await _executor(built).run({}, None, log=log, listener=listener)
    assert seen == [("node_complete", "a", 1), ("pause", "b", 2), ("pause", "", 3)]


async def test_without_a_log_no_checkpoint_is_reported() -> None:
    events = Events()
    await _executor(graph({"a": Writing()})).run({}, None, listener=events)
    assert events.of(Checkpointed) == []


async def test_a_pause_is_durable_before_the_outcome_is_reported() -> None:
    log = MemoryRunLog()

    async def listener(event: GraphEvent) -> None:
        if isinstance(event, RunCompleted):
            assert log.durable == len(log.texts) == 2

    await _executor(graph({"a": Writing(Pause())})).run({}, None, log=log, listener=listener)
    assert _kinds(log) == [("step", "a"), ("pause", "")]


async def test_records_hold_nothing_but_json() -> None:
    log = MemoryRunLog()
    built = graph({"a": Writing(deep={"list": [1, {"x": None}], "tuple": (1, 2)})})
    await _executor(built).run({}, None, log=log)
    assert json.loads(log.texts[0])["update"] == {"deep": {"list": [1, {"x": None}], "tuple": [1, 2]}}


async def test_usual_values_are_left_out_of_a_record() -> None:
    log = MemoryRunLog()
    await _executor(graph({"a": Writing(), "b": Writing()}, "a>b")).run({}, None, log=log)
    second = log.records[1]
    assert second == {"do": "step", "node": "b"}


def _three(node: Flaky | None = None) -> GraphSpec[None, State]:
    return graph(
        {"a": Writing(x=1), "b": NodeSpec(run=node or Writing(x=2), retry=TWICE), "c": Writing()},
        "a>b",
        "b>c",
    )


@pytest.mark.parametrize("at", [1, 2])
async def test_a_record_that_cannot_be_written_fails_the_run(at: int) -> None:
    log, events = MemoryRunLog(fail_append=at), Events()
    with pytest.raises(LogBroken):
        await _executor(_three()).run({}, None, log=log, listener=events)
    outcome = events.only_outcome()
    assert (outcome.status, outcome.stop_reason, outcome.quality) == ("failed", "error", "failed")
    assert outcome.error is not None
    assert isinstance(outcome.error.exception, LogBroken)
    assert len(log.texts) == at - 1


async def test_an_end_that_cannot_be_written_fails_the_run() -> None:
    log, events = MemoryRunLog(fail_barrier=1), Events()
    with pytest.raises(LogBroken):
        await _executor(_three()).run({}, None, log=log, listener=events)
    assert events.only_outcome().status == "failed"


async def test_a_pause_that_cannot_be_made_durable_fails_the_run() -> None:
    log, events = MemoryRunLog(fail_barrier=1), Events()
    with pytest.raises(LogBroken):
        await _executor(graph({"a": Writing(Pause())})).run({}, None, log=log, listener=events)
    assert events.only_outcome().status == "failed"


async def test_an_abort_that_cannot_be_recorded_fails_the_run() -> None:
    control, events = RunControl(), Events()
    control.abort()
    with pytest.raises(LogBroken):
        await _executor(_three()).run(
            {}, None, log=MemoryRunLog(fail_append=1), listener=events, control=control
        )
    assert events.only_outcome().status == "failed"


async def test_a_retry_that_cannot_be_recorded_fails_the_run_and_is_not_made() -> None:
    node, events = Flaky(9), Events()
    with pytest.raises(LogBroken):
        await _executor(_three(node)).run({}, None, log=MemoryRunLog(fail_append=2), listener=events)
    assert node.calls == 1
    assert events.only_outcome().failures == ()


@pytest.mark.parametrize("failing", [(1, 0), (0, 1), (2, 0)])
async def test_a_log_that_fails_inside_an_effect_is_not_the_nodes_failure(failing: tuple[int, int]) -> None:
    calls: list[str] = []

    async def call() -> str:
        calls.append("called")
        return "sent"

    async def node(_state: State, _context: None) -> NodeResult:
        calls.append("node")
        await current_step().effect("send", call)
        return NodeResult()

    rescue, events = Writing(), Events()
    log = MemoryRunLog(fail_append=failing[0], fail_barrier=failing[1])
    built = graph({"a": NodeSpec(run=node, retry=TWICE), "b": rescue}, edge_of("a>b", OnFailure()))
    with pytest.raises(LogBroken):
        await _executor(built).run({}, None, log=log, listener=events)
    assert calls == (["node", "called"] if failing == (2, 0) else ["node"])
    assert rescue.calls == 0
    assert events.only_outcome().failures == ()


async def test_a_node_cannot_hide_that_the_log_has_failed() -> None:
    async def call() -> None:
        raise AssertionError("the barrier has failed before")

    async def node(_state: State, _context: None) -> NodeResult:
        with contextlib.suppress(LogBroken):
            await current_step().effect("send", call)
        return NodeResult()

    after, events, log = Writing(), Events(), MemoryRunLog(fail_barrier=1)
    with pytest.raises(LogBroken):
        await _executor(graph({"a": node, "b": after}, "a>b")).run({}, None, log=log, listener=events)
    assert after.calls == 0
    assert events.only_outcome().status == "failed"
    assert _kinds(log) == [("effect", "a")]


@pytest.mark.parametrize("policy", ["fail_all", "continue_others", "wait_all"])
async def test_a_log_that_fails_in_a_branch_fails_the_run_whatever_the_policy(policy: str) -> None:
    built = graph(
        {"a": Writing(), "b": Writing(b=1), "c": Writing(c=1), "d": Writing()},
        *("a>b", "a>c", "b>d", "c>d"),
        fan_out=FanOut(on_failure=policy),  # type: ignore[arg-type]  # given by name above
    )
    for at in (2, 3):
        events = Events()
        with pytest.raises(LogBroken):
            await _executor(built).run({}, None, log=MemoryRunLog(fail_append=at), listener=events)
        assert events.only_outcome().status == "failed"
        assert "d" not in events.only_outcome().path


async def test_a_listener_that_fails_fails_the_run_with_its_error_and_hears_of_the_end() -> None:
    heard: list[GraphEvent] = []

    async def listener(event: GraphEvent) -> None:
        heard.append(event)
        if len(heard) == 2:
            raise ConnectionError("the channel is gone")

    after = Writing()
    with pytest.raises(ConnectionError):
        await _executor(graph({"a": Writing(), "b": after}, "a>b")).run({}, None, listener=listener)
    assert after.calls == 0
    assert sum(isinstance(event, RunCompleted) for event in heard) == 1
    assert isinstance(heard[-1], RunCompleted)


async def test_a_listener_that_fails_inside_an_effect_is_not_the_nodes_failure() -> None:
    async def listener(event: GraphEvent) -> None:
        if isinstance(event, Checkpointed) and event.kind == "effect":
            raise ConnectionError("the channel is gone")

    calls: list[int] = []

    async def call() -> None:
        return None

    async def node(_state: State, _context: None) -> NodeResult:
        calls.append(1)
        await current_step().effect("send", call)
        return NodeResult()

    with pytest.raises(ConnectionError):
        await _executor(graph({"a": NodeSpec(run=node, retry=TWICE)})).run(
            {}, None, log=MemoryRunLog(), listener=listener
        )
    assert calls == [1]
