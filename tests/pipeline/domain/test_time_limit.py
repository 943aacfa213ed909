"""Work with a time limit behaves as in the block of a timeout, whether or not it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from pipeline.domain.clock import ManualClock, within

T = TypeVar("T")


class _Clock(ManualClock):
    """Counts the timers."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = 0

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        self.timers += 1
        return super().timeout(seconds)


def _begun(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    return asyncio.get_running_loop().create_task(work)


async def _at_once(value: int) -> int:
    return value


async def _after(clock: ManualClock, seconds: float, value: int) -> int:
    await clock.sleep(seconds)
    await asyncio.sleep(0)
    return value


async def test_work_that_does_not_wait_sets_no_timer() -> None:
    clock = _Clock()
    assert await within(clock, 5, _at_once(3)) == 3
    assert clock.timers == 0


async def test_work_that_waits_gets_its_result_within_the_time() -> None:
    clock = _Clock()
    waiting = _begun(within(clock, 5, _after(clock, 2, 4)))
    await clock.advance(2)
    assert await waiting == 4
    assert clock.timers == 1


async def test_a_future_is_work_too() -> None:
    clock = _Clock()
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiting = _begun(within(clock, 5, future))
    await asyncio.sleep(0)
    future.set_result(7)
    assert await waiting == 7
    assert await within(clock, 5, future) == 7
    assert clock.timers == 1


async def test_work_that_waits_too_long_is_cancelled() -> None:
    clock, ended = _Clock(), list[str]()

    async def work() -> None:
        try:
            await clock.sleep(60)
        finally:
            ended.append("cancelled")

    waiting = _begun(within(clock, 5, work()))
    await clock.advance(5)
    with pytest.raises(TimeoutError):
        await waiting
    assert ended == ["cancelled"]


async def test_a_cancellation_from_outside_is_no_timeout() -> None:
    clock = _Clock()
    waiting = _begun(within(clock, 5, _after(clock, 60, 1)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_work_may_catch_what_ends_its_wait() -> None:
    clock = _Clock()

    async def stubborn() -> str:
        try:
            await clock.sleep(60)
        except asyncio.CancelledError:
            return "caught"
        return "slept"

    waiting = _begun(within(clock, 90, stubborn()))
    await asyncio.sleep(0)
    waiting.cancel()
    assert await waiting == "caught"


@pytest.mark.parametrize("waits", [False, True])
async def test_an_error_of_the_work_is_raised(*, waits: bool) -> None:
    clock = _Clock()

    async def fails() -> None:
        if waits:
            await asyncio.sleep(0)
        raise ValueError("from the work")

    with pytest.raises(ValueError, match="from the work"):
        await within(clock, 5, fails())


async def test_work_has_the_task_and_the_timeouts_of_its_caller() -> None:
    clock = _Clock()

    async def own() -> object:
        before = asyncio.current_task()
        await asyncio.sleep(0)
        assert before is asyncio.current_task()
        with pytest.raises(TimeoutError):
            async with clock.timeout(1):
                await clock.sleep(60)
        return before

    waiting: asyncio.Task[object] = _begun(within(clock, 5, own()))
    await clock.advance(1)
    assert await waiting is waiting
