"""Snapshots: when they are taken, how much they weigh, and that a run comes back from each as it was."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.graph.decisions import End, NodeResult, Pause, State
from pipeline.graph.events import Checkpointed
from pipeline.graph.executor import Executor
from pipeline.graph.outcome import Answer
from pipeline.graph.spec import FanOut, GraphSpec, Limits, NodeSpec, OnSuccess, RetryPolicy, When, append
from pipeline.graph.step import current_step
from tests.pipeline.graph.running import Events, Flaky, Writing, graph
from tests.pipeline.graph.written import edge_of
from tests.support.graph_log import MemoryRunLog


async def _counts(state: State, _context: None) -> NodeResult:
    count = state.get("count", 0) + 1
    return NodeResult(update={"count": count, "said": [f"message {count}"]})


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
    """How many records stand before each snapshot."""
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


async def _same_from_snapshots(
    built: GraphSpec[None, State], records: MemoryRunLog, answers: list[Answer], context: str
) -> None:
    """Resumed behind each snapshot, with nothing else readable but the head, the run ends the same."""
    places = _places(records)
    assert places, context
    for place in places:
        plain = await _executor(built).resume(records.records, None, answers=answers)
        bare = _spoilt(records, *range(1, place))
        outcome = await _executor(built).resume(bare.records, None, answers=answers)
        assert outcome == plain, (context, place)


async def test_a_run_comes_back_from_every_snapshot_as_it_was() -> None:
    async def keeps(_state: State, _context: None) -> NodeResult:
        await current_step().effect("send", _sent)
        return NodeResult(update={"said": ["kept"]})

    async def _sent() -> list[str]:
        return ["sent"]

    inner = graph({"p": _counts, "q": Writing(Pause(prompt="sure?", options=("yes", "no")), q=1)}, "p>q")
    built = graph(
        {
            "a": _counts,
            "b": NodeSpec(run=Flaky(1), retry=RetryPolicy(max_attempts=2, delay_s=0.0)),
            "c": keeps,
            "d": NodeSpec(subgraph=inner),
            "e": NodeSpec(run=Writing(e=1), nullable=("e",), writes=("e",)),
            "f": Writing(f=1),
            "join": Writing(End("blocked"), joined=True),
        },
        *("a>b", "a>c", "a>d", "b>e", "e>join", "c>f", "f>join", "d>join"),
        channels={"said": append},
        fan_out=FanOut(on_failure="wait_all"),
    )
    log = MemoryRunLog()
    paused = await _executor(built, first=1).run({}, None, log=log)
    assert paused.stop_reason == "waiting_for_user"
    assert len(_places(log)) > 3
    await _same_from_snapshots(built, log, [Answer(gate=paused.gates[0].id, choice="yes")], "gate")


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
    paused = await _executor(built, first=1).run({}, None, log=log)
    assert [gate.prompt for gate in paused.gates] == ["early", "late"]
    outcome = await _executor(built).resume(_spoilt(log, 1, 2).records, None)
    assert outcome.gates == paused.gates


async def test_a_deferred_successor_keeps_its_inputs_over_a_snapshot() -> None:
    after = Writing()
    built = graph(
        {"a": Writing(), "b": Writing(secret="b"), "c": Writing(Pause()), "d": after, "z": Writing()},
        *("a>b", "a>c", edge_of("b>d", mapping={"given": "secret"}), "d>z", "c>z"),
    )
    log = MemoryRunLog()
    paused = await _executor(built, first=1).run({}, None, log=log)
    assert after.calls == 0
    bare = _spoilt(log, *range(1, _places(log)[-1]))
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
    paused = await _executor(built, first=1).run({}, None, log=log)
    place = _places(log)[-1]
    outcome = await _executor(built).resume(
        _spoilt(log, *range(1, place)).records, None, answers=[Answer(gate=paused.gates[0].id, choice="y")]
    )
    assert outcome.quality == "degraded"
    assert seen.seen[0]["fanout"]["errors"]["b"]["message"] == "boom"
