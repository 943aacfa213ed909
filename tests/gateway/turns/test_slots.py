"""Who waits for whom after the process has died again and again."""

from __future__ import annotations

import asyncio

from gateway.storage.crash_counts import Deaths
from gateway.turns.slots import ALONE_S, Quarantine
from pipeline.domain.clock import ManualClock

TWICE = Deaths(total=2)


async def _admitted(quarantine: Quarantine, *seqs: int) -> list[int]:
    """Which of the entries may be worked on now."""
    async with asyncio.TaskGroup() as group:
        tasks = {seq: group.create_task(quarantine.admit(seq)) for seq in seqs}
        for _ in range(3):
            await asyncio.sleep(0)
        found = [seq for seq, task in tasks.items() if task.done()]
        for task in tasks.values():
            task.cancel()
    return found


async def test_after_one_death_no_one_waits_for_anybody() -> None:
    quarantine = Quarantine(ManualClock(), 2)
    quarantine.hold({1: Deaths(total=1, alone=1), 2: Deaths(total=1)})
    assert await _admitted(quarantine, 1, 2, 3) == [1, 2, 3]


async def test_suspected_entries_come_one_at_a_time_and_before_all_others() -> None:
    quarantine = Quarantine(ManualClock(), 2)
    quarantine.hold({1: Deaths(total=3, alone=1), 2: TWICE, 3: Deaths(total=1)})
    assert await _admitted(quarantine, 1, 2, 3, 4) == [2]
    quarantine.end(2)
    assert await _admitted(quarantine, 1, 3, 4) == [1]
    quarantine.end(1)
    assert await _admitted(quarantine, 1, 2, 3, 4) == [1, 2, 3, 4]


async def test_one_that_ends_before_its_turn_is_not_waited_for() -> None:
    quarantine = Quarantine(ManualClock(), 2)
    quarantine.hold({1: TWICE, 2: TWICE, 3: TWICE})
    quarantine.end(2)
    assert await _admitted(quarantine, 1, 3) == [1]
    quarantine.end(1)
    assert await _admitted(quarantine, 3, 4) == [3]


async def test_others_wait_for_a_slow_one_only_so_long() -> None:
    clock = ManualClock()
    quarantine = Quarantine(clock, 2)
    quarantine.hold({1: TWICE, 2: TWICE})
    await clock.advance(ALONE_S - 1)
    assert await _admitted(quarantine, 1, 2, 3) == [1]
    await clock.advance(2)
    assert await _admitted(quarantine, 2, 3) == [2]
    quarantine.end(2)
    assert await _admitted(quarantine, 3) == [3]
