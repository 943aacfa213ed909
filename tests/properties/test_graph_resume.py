"""Wherever a run is cut off, resuming it gives the uninterrupted run: on random graphs.

The comparison is exact, the order of parallel branches included: nodes get their turns in an order that
depends on the state of the run alone (graph_world.Turns). Where an interruption changes that order by
right, because nodes in progress are finished or started again at another time, graphs are drawn on which it
does not matter, and only the order itself is left out of the comparison.

Covers: pipeline/graph/run/apply.py.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.execution.control import RunControl
from pipeline.graph.run.outcome import RunOutcome
from pipeline.graph.run.records import RunEnded
from pipeline.graph.run.snapshots import dump, load
from tests.properties.graph_playing import Player, essence, unordered
from tests.properties.graph_strategies import Scenario, scenarios
from tests.properties.graph_world import World
from tests.support.examples import examples
from tests.support.graph_log import LogBroken, MemoryRunLog

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]
_settings = examples(30, suppressed=_CHECKS)
_fewer = examples(8, suppressed=_CHECKS)

DAMAGES = ("", "[]", "7", "null", "{}", "other do", "other node", "no node", "no do")


@_settings
@given(scenario=scenarios())
def test_a_run_killed_after_any_record_and_resumed_is_the_uninterrupted_run(scenario: Scenario) -> None:
    async def check() -> None:
        player, whole = Player(scenario), MemoryRunLog()
        expected = await player.play(World(), whole)
        for length in range(len(whole.texts)):
            await _check_resumed(player, whole.cut(length), expected)
        with pytest.raises(RunEnded):
            await player.resume(World(), whole)

    asyncio.run(check())


@_fewer
@given(scenario=scenarios(any_order=True))
def test_a_run_with_gates_in_its_branches_killed_after_any_record_ends_the_same(scenario: Scenario) -> None:
    async def check() -> None:
        player, whole = Player(scenario), MemoryRunLog()
        expected = unordered(await player.play(World(), whole))
        for length in range(len(whole.texts)):
            assert unordered(await player.play_on(World(), whole.cut(length))) == expected

    asyncio.run(check())


@_fewer
@given(scenario=scenarios(), first_snapshot=st.integers(1, 12))
def test_snapshots_at_any_place_change_nothing(scenario: Scenario, first_snapshot: int) -> None:
    async def check() -> None:
        expected = await Player(scenario).play(World(), MemoryRunLog())
        player, whole = Player(scenario, first_snapshot), MemoryRunLog()
        assert essence(await player.play(World(), whole)) == essence(expected)
        for length in range(len(whole.texts)):
            await _check_resumed(player, whole.cut(length), expected)

    asyncio.run(check())


@_fewer
@given(scenario=scenarios())
def test_a_run_at_any_moment_is_the_same_after_a_snapshot(scenario: Scenario) -> None:
    async def check() -> None:
        player, whole = Player(scenario), MemoryRunLog()
        await player.play(World(), whole)
        for length in range(1, len(whole.texts)):
            run = player.run(whole.cut(length).records)
            plain = json.loads(json.dumps(thaw(dump(run))))
            loaded = load(plain, run.id, scenario.graph)
            # The snapshot itself is one more record.
            assert thaw(dump(loaded)) == plain | {"records": plain["records"] + 1}
            assert list(loaded.frames) == list(run.frames)
            assert loaded.open_gates() == run.open_gates()

    asyncio.run(check())


@_settings
@given(scenario=scenarios(), data=st.data(), first_snapshot=st.sampled_from((3, 10_000)))
def test_a_damaged_record_costs_at_most_what_stood_behind_it(
    scenario: Scenario, data: st.DataObject, first_snapshot: int
) -> None:
    async def check() -> None:
        player, log = Player(scenario, first_snapshot), MemoryRunLog()
        expected = await player.play(World(), log)
        # Twice: what is written after the first damage can be cut off and damaged as well.
        for _ in range(2):
            log = _damaged(log, data)
            length = len(log.texts)
            outcome = await _played_on_unless_over(player, log, expected)
            assert essence(outcome) == essence(expected)
            cut = data.draw(st.integers(length, len(log.texts)))
            outcome = await _played_on_unless_over(player, log.cut(cut), expected)
            assert essence(outcome) == essence(expected)

    asyncio.run(check())


@_fewer
@given(scenario=scenarios())
def test_a_log_that_fails_fails_the_call_and_the_run_continues_from_what_it_has(scenario: Scenario) -> None:
    async def check() -> None:
        player, whole = Player(scenario), MemoryRunLog()
        expected = await player.play(World(), whole)
        for number in range(1, len(whole.texts) + 1):
            for log in (MemoryRunLog(fail_append=number), MemoryRunLog(fail_barrier=number)):
                world = World()
                try:
                    await player.play(world, log)
                except LogBroken:
                    durable = log.cut(log.durable)
                    assert essence(await player.play_on(World(), durable)) == essence(expected)
                    error = world.completions[-1].outcome.error
                    assert error is not None
                    assert isinstance(error.exception, LogBroken)

    asyncio.run(check())


@_fewer
@given(scenario=scenarios(parallel=False), how=st.sampled_from(("pause", "abort", "cancel")))
def test_a_run_without_branches_may_be_interrupted_anywhere(scenario: Scenario, how: str) -> None:
    async def check() -> None:
        expected = essence(await Player(scenario).play(World(), MemoryRunLog()))
        for outcome in await _interrupted_everywhere(Player(scenario), how):
            assert essence(outcome) == expected

    asyncio.run(check())


@_fewer
@given(scenario=scenarios(any_order=True), how=st.sampled_from(("pause", "abort", "cancel")))
def test_a_run_with_branches_may_be_interrupted_anywhere(scenario: Scenario, how: str) -> None:
    async def check() -> None:
        expected = unordered(await Player(scenario).play(World(), MemoryRunLog()))
        for outcome in await _interrupted_everywhere(Player(scenario), how):
            assert unordered(outcome) == expected

    asyncio.run(check())


async def _check_resumed(player: Player, log: MemoryRunLog, expected: RunOutcome) -> None:
    before = player.run(log.records) if log.texts else None
    world = World()
    outcome = await player.play_on(world, log)
    assert essence(outcome) == essence(expected)
    if before is None:
        return
    for label, visit in world.executed:
        assert visit > before.executions(label), f"{label} ran again"
    for frame in before.frames.values():
        if frame.effects.get("call", ("", None))[0] == "done":
            assert (frame.label, before.executions(frame.label) + 1) not in world.effects
    # A resumed run can be replayed as well as any other.
    assert thaw(player.run(log.records).root.values) == thaw(expected.state)


def _damaged(log: MemoryRunLog, data: st.DataObject) -> MemoryRunLog:
    at = data.draw(st.integers(1, len(log.texts) - 1)) if len(log.texts) > 1 else 0
    damage = data.draw(st.sampled_from(DAMAGES)) if at else "other node"
    record = log.records[at]
    if not isinstance(record, dict) or not damage.startswith(("other", "no ")):
        return log.damaged(at, damage)
    kind, _, key = damage.partition(" ")
    changed = {name: value for name, value in record.items() if name != key}
    if kind == "other" and key in record:
        changed[key] = "nothing"
    return log.damaged(at, json.dumps(changed))


async def _played_on_unless_over(player: Player, log: MemoryRunLog, expected: RunOutcome) -> RunOutcome:
    """The rest of a run, if anything was lost."""
    try:
        return await player.play_on(World(), log)
    except RunEnded:
        assert player.run(log.records).ended
        return expected


async def _interrupted_everywhere(player: Player, how: str) -> list[RunOutcome]:
    """The run's ends, when its first call is interrupted at each place in turn."""
    task = asyncio.current_task()
    assert task is not None
    ends: list[RunOutcome] = []
    for place in itertools.count(1):
        log, control = MemoryRunLog(), RunControl()
        actions: dict[str, Callable[[], object]] = {
            "pause": control.request_pause,
            "abort": control.abort,
            "cancel": task.cancel,
        }
        world = World(place, actions[how])
        cancelled = False
        try:
            await player.begin(world, log, control)
        except asyncio.CancelledError:
            task.uncancel()
            cancelled = True
        if world.passed < place:
            break
        (completion,) = world.completions
        if not log.texts:
            ends.append(await player.play(World(), log))
        elif not player.run(log.records).ended:
            ends.append(await player.finish(completion.outcome, World(), log))
        elif not cancelled:  # Else it came while the listener heard of the end, and the run is over.
            ends.append(completion.outcome)
    return ends
