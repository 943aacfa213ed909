"""Snapshots: when they are taken, how much they weigh, and that a run comes back from each as it was."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import Continue, End, NodeResult, Pause, State
from pipeline.graph.definition.spec import (
    FanOut,
    GraphSpec,
    Limits,
    NodeSpec,
    OnSuccess,
    RetryPolicy,
    When,
    append,
)
from pipeline.graph.execution.executor import Executor
from pipeline.graph.execution.step import current_step
from pipeline.graph.run.events import Checkpointed
from pipeline.graph.run.outcome import Answer
from pipeline.graph.run.records import GateRefused
from pipeline.graph.run.replay import replay
from pipeline.graph.run.snapshots import dump
from tests.pipeline.graph.running import Events, Flaky, Writing, graph
from tests.pipeline.graph.written import edge_of
from tests.support.graph_log import MemoryRunLog


async def _counts(state: State, _context: None) -> NodeResult:
    count = state.get("count", 0) + 1
    return NodeResult(update={"count": count, "said": [f"message {count}"]})


async def _second_time(_state: State, _context: None) -> NodeResult:
    if current_step().attempt == 1:
        raise ValueError("not yet")
    return NodeResult(update={"flaky": True})


async def _fails(_state: State, _context: None) -> NodeResult:
    raise GraphError("no")


def _loop(times: int) -> GraphSpec[None, State]:
    return graph(
        {"a": _counts, "b": _counts},
        "a>b",
        edge_of("b>a", When(f"count < {times}")),
        limits=Limits(max_steps=10_000),
        channels={"said": append},
    )


def _executor(built: GraphSpec[None, State], first: int = 64) -> Executor[None, State]:
    return Executor(built, clock=ManualClock(), first_snapshot=first)


def _places(log: MemoryRunLog) -> list[int]:
    """How many records are before each snapshot."""
    return [at for at, record in enumerate(log.records) if record and record["do"] == "snapshot"]


async def test_snapshots_come_at_doubling_distances() -> None:
    log, events = MemoryRunLog(), Events()
    await _executor(_loop(600)).run({}, None, log=log, listener=events)
    assert _places(log) == [64, 128, 256, 512]
    assert events.of(Checkpointed).count(Checkpointed("snapshot", "")) == 4


async def test_a_short_run_has_none() -> None:
    log = MemoryRunLog()
    await _executor(_loop(60)).run({}, None, log=log)
    assert _places(log) == []


@pytest.mark.parametrize("times", [100, 200, 400, 800])
async def test_all_snapshots_together_weigh_about_as_much_as_the_records(times: int) -> None:
    log = MemoryRunLog()
    await _executor(_loop(times)).run({}, None, log=log)
    snapshots = sum(len(text) for text in log.texts if text.startswith('{"do": "snapshot"'))
    assert snapshots < 1.5 * (sum(len(text) for text in log.texts) - snapshots)


async def test_a_resumed_run_takes_the_next_one_where_it_is_due() -> None:
    log = MemoryRunLog()
    await _executor(_loop(200)).run({}, None, log=log)
    cut = log.cut(100)
    await _executor(_loop(200)).resume(cut.records, None, log=cut)
    assert _places(cut) == [64, 128]


def _spoilt(log: MemoryRunLog, *places: int) -> MemoryRunLog:
    for at in places:
        log = log.damaged(at, "{")
    return log


async def test_records_before_the_newest_snapshot_are_not_needed() -> None:
    log = MemoryRunLog()
    whole = await _executor(_loop(200)).run({}, None, log=log)
    crashed = _spoilt(log.cut(150), *range(1, 128))
    outcome = await _executor(_loop(200)).resume(crashed.records, None, log=crashed)
    assert outcome.state == whole.state
    assert outcome.path == whole.path
    assert not any(record and record["do"] == "resume" for record in crashed.records)


async def test_a_damaged_record_between_two_snapshots_costs_nothing() -> None:
    log = MemoryRunLog()
    whole = await _executor(_loop(200)).run({}, None, log=log)
    crashed = _spoilt(log.cut(150), 100)
    outcome = await _executor(_loop(200)).resume(crashed.records, None, log=crashed)
    assert outcome.path == whole.path
    assert not any(record and record["do"] == "resume" for record in crashed.records)


async def test_a_snapshot_that_cannot_be_read_is_passed_over_for_an_older_one() -> None:
    log = MemoryRunLog()
    whole = await _executor(_loop(200)).run({}, None, log=log)
    calls = Events()
    crashed = _spoilt(log.cut(150), 128, *range(1, 64))
    outcome = await _executor(_loop(200)).resume(crashed.records, None, listener=calls)
    assert outcome.state == whole.state
    assert outcome.path == whole.path


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: run.pop("root"),
        lambda run: run.update(totals=3),
        lambda run: run["root"].update(values="text"),
        lambda run: run["root"].pop("status"),
        lambda run: run["root"].update(node="gone"),
    ],
)
async def test_a_snapshot_that_does_not_fit_is_passed_over_for_the_records(spoil: Any) -> None:
    log = MemoryRunLog()
    whole = await _executor(_loop(200)).run({}, None, log=log)
    record = json.loads(log.texts[64])
    spoil(record["run"])
    crashed = log.cut(100).damaged(64, json.dumps(record))
    outcome = await _executor(_loop(200)).resume(crashed.records, None)
    assert outcome.state == whole.state
    assert outcome.path == whole.path


def _with_snapshot(built: GraphSpec[None, State], log: MemoryRunLog, length: int) -> MemoryRunLog:
    """The first record, and a snapshot in the place of all others up to `length`."""
    bare = log.cut(1)
    bare.append({"do": "snapshot", "run": dump(replay(built, log.cut(length).records, {}).run)})
    return bare


async def _same_from_each(built: GraphSpec[None, State], log: MemoryRunLog, *answers: Answer) -> None:
    """Resumed from a snapshot at any place, the run ends as it does when resumed from the records."""
    assert _places(log) == []
    for length in range(1, len(log.texts)):
        given = [answer for answer in answers if answer.gate in "".join(log.texts[:length])]
        plain = await _executor(built).resume(log.cut(length).records, None, answers=given)
        bare = _with_snapshot(built, log, length)
        assert await _executor(built).resume(bare.records, None, answers=given) == plain, length


async def test_a_run_comes_back_from_a_snapshot_at_any_place_as_it_was() -> None:
    async def sends(_state: State, _context: None) -> NodeResult:
        await current_step().effect("send", _sent)
        return NodeResult(update={"said": ["sent"]})

    async def _sent() -> list[str]:
        return ["receipt"]

    async def loops(state: State, _context: None) -> NodeResult:
        return NodeResult(update={"turns": state.get("turns", 0) + 1}, decision=Continue())

    inner = graph({"p": _counts, "q": Writing(Pause(prompt="sure?", options=("yes", "no")), q=1)}, "p>q")
    built = graph(
        {
            "a": _counts,
            "again": NodeSpec(run=Writing(), max_visits=1, writes=("draft",), nullable=("draft",)),
            "b": NodeSpec(run=_second_time, retry=RetryPolicy(max_attempts=2, delay_s=0.0)),
            "c": sends,
            "d": NodeSpec(subgraph=inner),
            "e": NodeSpec(run=_fails, writes=("e",), nullable=("e",)),
            "f": Writing(End("blocked"), f=1),
            "join": Writing(joined=True),
            "loop": loops,
        },
        *("a>again", "again>b", "again>c", "again>d"),
        *(edge_of("b>e", mapping={"given": "flaky"}), edge_of("e>join", OnSuccess())),
        *("c>f", "f>join", "d>join", "join>loop"),
        channels={"said": append},
        fan_out=FanOut(on_failure="wait_all"),
        limits=Limits(max_consecutive=4),
    )
    log = MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    assert paused.stop_reason == "waiting_for_user"
    answer = Answer(gate=paused.gates[0].id, choice="yes")
    await _same_from_each(built, log, answer)
    outcome = await _executor(built).resume(log.records, None, answers=[answer], log=log)
    assert outcome.stop_reason == "max_loops"
    await _same_from_each(built, log)


async def test_visits_steps_and_retries_come_back_from_a_snapshot() -> None:
    built = graph(
        {
            "a": NodeSpec(run=_counts, max_visits=3),
            "b": NodeSpec(run=_second_time, retry=RetryPolicy(delay_s=0.0)),
        },
        "a>b",
        edge_of("b>a", When("more")),
        limits=Limits(max_steps=9),
    )
    log = MemoryRunLog()
    whole = await _executor(built).run({"more": True}, None, log=log)
    assert (whole.stop_reason, whole.retries, whole.state["count"]) == ("max_steps", 4, 3)
    await _same_from_each(built, log)


async def test_an_answered_gate_stays_answered_behind_a_snapshot() -> None:
    built, log = graph({"ask": Writing(Pause()), "b": Writing(Pause())}, "ask>b"), MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    answer = Answer(gate=paused.gates[0].id, choice="yes")
    await _executor(built).resume(log.records, None, answers=[answer], log=log)
    bare = _with_snapshot(built, log, len(log.texts))
    with pytest.raises(GateRefused) as caught:
        await _executor(built).resume(bare.records, None, answers=[answer])
    assert caught.value.status == "already_answered"


async def test_what_a_gate_holds_back_is_held_back_behind_a_snapshot() -> None:
    after = Writing()
    built = graph(
        {"a": Writing(), "ask": Writing(Pause()), "b": Writing(), "c": after, "z": Writing()},
        *("a>ask", "a>b", "b>c", "c>z", "ask>z"),
    )
    log = MemoryRunLog()
    await _executor(built).run({}, None, log=log)
    bare = _with_snapshot(built, log, len(log.texts))
    assert (await _executor(built).resume(bare.records, None)).status == "paused"
    assert after.calls == 0


async def test_gates_come_back_from_a_snapshot_oldest_first() -> None:
    go = asyncio.Event()

    async def waits(_state: State, _context: None) -> NodeResult:
        await go.wait()
        return NodeResult(decision=Pause(prompt="late"))

    async def opens(_state: State, _context: None) -> NodeResult:
        go.set()
        return NodeResult(decision=Pause(prompt="early"))

    built = graph(
        {"a": Writing(), "b": waits, "c": opens, "z": Writing()},
        *("a>b", "a>c", "b>z", "c>z"),
    )
    log = MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    assert [gate.prompt for gate in paused.gates] == ["early", "late"]
    outcome = await _executor(built).resume(_with_snapshot(built, log, len(log.texts)).records, None)
    assert outcome.gates == paused.gates


async def test_a_deferred_successor_keeps_its_inputs_over_a_snapshot() -> None:
    after = Writing()
    built = graph(
        {"a": Writing(), "b": Writing(secret="b"), "c": Writing(Pause()), "d": after, "z": Writing()},
        *("a>b", "a>c", edge_of("b>d", mapping={"given": "secret"}), "d>z", "c>z"),
    )
    log = MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    assert after.calls == 0
    bare = _with_snapshot(built, log, len(log.texts))
    await _executor(built).resume(bare.records, None, answers=[Answer(gate=paused.gates[0].id, choice="y")])
    assert after.seen[-1]["given"] == "b"


async def test_a_failed_branch_and_its_failure_are_in_a_snapshot() -> None:
    seen = Writing()
    built = graph(
        {
            "a": Writing(),
            "b": NodeSpec(run=Flaky(9), retry=RetryPolicy(max_attempts=1)),
            "c": Writing(Pause()),
            "z": seen,
        },
        *("a>b", "a>c", edge_of("b>z", OnSuccess()), "c>z"),
        fan_out=FanOut(on_failure="continue_others"),
    )
    log = MemoryRunLog()
    paused = await _executor(built).run({}, None, log=log)
    answer = Answer(gate=paused.gates[0].id, choice="yes")
    bare = _with_snapshot(built, log, len(log.texts))
    outcome = await _executor(built).resume(bare.records, None, answers=[answer])
    assert outcome.quality == "degraded"
    assert seen.seen[0]["fanout"]["errors"]["b"]["message"] == "boom"
