"""The manual clock: time moves only on request, and sleepers wake in order; timeouts obey it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from pipeline.domain.clock import Clock, ManualClock, SystemClock


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


@pytest.mark.parametrize(("step", "steps"), [(0.1, 100), (0.3, 3_000), (0.001, 5_000), (1 / 64, 640)])
async def test_an_alarm_rings_with_the_step_that_completes_its_time(step: float, steps: int) -> None:
    clock = ManualClock(start=1000.0)
    rung: list[str] = []
    clock.call_after(step * steps, lambda: rung.append("alarm"))
    for _ in range(steps - 1):
        await clock.advance(step)
    assert rung == []
    await clock.advance(step)
    assert rung == ["alarm"]
    assert clock.monotonic() == pytest.approx(step * steps, abs=1e-12)
    assert clock.now() == 1000.0 + round(step * steps, 9)


async def test_anyone_who_waits_for_the_rest_of_a_float_comes_to_an_end() -> None:
    clock = ManualClock()

    async def until(due: float) -> None:
        while clock.monotonic() < due:
            await clock.sleep(due - clock.monotonic())

    async with asyncio.TaskGroup() as group:
        task = group.create_task(until(0.1 + 0.2 + 1e-10))
        await clock.advance(0.31)
    assert task.done()


async def test_what_waits_without_end_is_never_woken() -> None:
    clock = ManualClock()
    rung: list[str] = []
    clock.call_after(float("inf"), lambda: rung.append("alarm"))
    await clock.advance(1e9)
    assert rung == []


async def test_a_jump_of_the_wall_clock_wakes_no_one() -> None:
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


async def test_a_timeout_fires_exactly_when_the_clock_reaches_it() -> None:
    clock = ManualClock()

    async def work() -> None:
        async with clock.timeout(5):
            await clock.sleep(60)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_outcome(work()))
        await clock.advance(4.999)
        assert not task.done()
        await clock.advance(0.001)
        assert task.result() == "timeout"


async def test_a_step_of_the_wall_clock_fires_no_timeout() -> None:
    clock = ManualClock()

    async def work() -> None:
        async with clock.timeout(5):
            await clock.sleep(2)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_outcome(work()))
        await asyncio.sleep(0)
        clock.step_wall(3600)
        await clock.advance(2)
    assert task.result() == "done"


async def test_a_timeout_whose_time_is_over_before_its_block_begins_ends_it_at_the_first_wait() -> None:
    clock = ManualClock()
    timeout = clock.timeout(5)
    await clock.advance(6)

    with pytest.raises(TimeoutError):
        async with timeout:
            await asyncio.Event().wait()
    assert timeout.expired()


async def test_a_timeout_that_was_left_in_time_does_nothing_later() -> None:
    clock = ManualClock()

    async def work() -> None:
        async with clock.timeout(5):
            await clock.sleep(1)
        await clock.sleep(60)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_outcome(work()))
        await clock.advance(30)
        assert not task.done()
        await clock.advance(31)
    assert task.result() == "done"


async def test_the_inner_of_two_timeouts_fires_alone_when_it_is_due_first() -> None:
    clock = ManualClock()
    seen: list[tuple[str, float]] = []

    async def work() -> None:
        try:
            async with clock.timeout(10):
                try:
                    async with clock.timeout(2):
                        await clock.sleep(60)
                except TimeoutError:
                    seen.append(("inner", clock.monotonic()))
                await clock.sleep(60)
        except TimeoutError:
            seen.append(("outer", clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        await clock.advance(20)
    assert seen == [("inner", 2), ("outer", 10)]


async def test_the_outer_of_two_timeouts_passes_through_the_inner_block() -> None:
    clock = ManualClock()
    seen: list[str] = []

    async def work() -> None:
        try:
            async with clock.timeout(2):
                try:
                    async with clock.timeout(10):
                        await clock.sleep(60)
                except TimeoutError:
                    seen.append("inner")
        except TimeoutError:
            seen.append("outer")

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        await clock.advance(20)
    assert seen == ["outer"]


async def test_timeouts_and_sleepers_keep_the_order_of_their_times() -> None:
    clock = ManualClock()
    seen: list[str] = []

    async def nap(seconds: float) -> None:
        await clock.sleep(seconds)
        seen.append(f"woken at {clock.monotonic():g}")

    async def limited(seconds: float) -> None:
        result = await _outcome(_within(clock, seconds))
        seen.append(f"{result} at {clock.monotonic():g}")

    async with asyncio.TaskGroup() as group:
        group.create_task(nap(3))
        group.create_task(limited(2))
        group.create_task(nap(1))
        group.create_task(limited(4))
        await clock.advance(5)
    assert seen == ["woken at 1", "timeout at 2", "woken at 3", "timeout at 4"]


async def test_at_the_same_time_the_deadline_comes_before_the_sleep_inside_it() -> None:
    clock = ManualClock()

    async def work() -> None:
        async with clock.timeout(5):
            await clock.sleep(5)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_outcome(work()))
        await clock.advance(5)
    assert task.result() == "timeout"


async def test_a_timeout_of_none_never_fires() -> None:
    clock = ManualClock()

    async def work() -> None:
        async with clock.timeout(None):
            await clock.sleep(1_000_000)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_outcome(work()))
        await clock.advance(999_999)
        assert not task.done()
        await clock.advance(1)
    assert task.result() == "done"


@pytest.mark.parametrize("clock", [ManualClock(), SystemClock()], ids=["manual", "system"])
async def test_a_timeout_of_zero_fires_at_the_first_wait(clock: Clock) -> None:
    assert await _outcome(_within(clock, 0)) == "timeout"


async def test_a_cancellation_inside_a_timeout_stays_a_cancellation() -> None:
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_within(clock, 5))
        await clock.advance(1)
        task.cancel()
    assert task.cancelled()


async def test_the_system_clock_has_real_timeouts() -> None:
    assert await _outcome(_within(SystemClock(), 0.001)) == "timeout"


async def _within(clock: Clock, seconds: float) -> None:
    async with clock.timeout(seconds):
        await asyncio.get_running_loop().create_future()


async def _outcome(work: Coroutine[None, None, None]) -> str:
    try:
        await work
    except TimeoutError:
        return "timeout"
    return "done"
