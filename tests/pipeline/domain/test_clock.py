"""The manual clock: time moves only when told, and sleepers wake in order."""

from __future__ import annotations

import asyncio

from pipeline.domain.clock import ManualClock, SystemClock


async def test_sleepers_wake_in_the_order_of_their_time_not_of_their_call() -> None:
    clock = ManualClock()
    woken: list[str] = []

    async def nap(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(nap("late", 5))
        group.create_task(nap("early", 1))
        await clock.advance(4.9)
        assert woken == ["early"]
        await clock.advance(0.1)
        assert woken == ["early", "late"]


async def test_a_jump_of_the_wall_clock_wakes_nobody() -> None:
    clock = ManualClock(start=1000.0)
    async with asyncio.TaskGroup() as group:
        nap = group.create_task(clock.sleep(10))
        clock.step_wall(86_400)
        await clock.advance(9)
        assert not nap.done()
        assert clock.now() == 1000.0 + 86_400 + 9
        assert clock.monotonic() == 9
        await clock.advance(1)
    assert nap.done()


async def test_a_cancelled_sleeper_does_not_disturb_the_others() -> None:
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(clock.sleep(1))
        second = group.create_task(clock.sleep(1))
        await asyncio.sleep(0)
        first.cancel()
        await clock.advance(1)
    assert first.cancelled()
    assert second.done()


async def test_the_system_clock_does_not_go_backwards() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(-1)
    assert clock.monotonic() >= before
    assert clock.now() > 1_700_000_000
