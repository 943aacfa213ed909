"""A turn's deadline: it comes after so much work, and waiting for a person is none."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.runtime.deadline import SharedTimer, TurnDeadline, TurnSuspension


def _deadline() -> TurnDeadline:
    clock = ManualClock()
    return TurnDeadline(SharedTimer(clock), clock, 10)


async def test_one_timer_calls_each_at_its_time_and_none_that_was_taken_back() -> None:
    clock, called = ManualClock(), list[str]()
    timer = SharedTimer(clock)
    timer.call_after(3, lambda: called.append("third"))
    timer.call_after(1, lambda: called.append("first"))
    taken_back = timer.call_after(2, lambda: called.append("taken back"))
    timer.call_after(2, lambda: called.append("second"))
    timer.cancel(taken_back)
    seen = []
    for _ in range(3):
        await clock.advance(1)
        seen.append(tuple(called))
    assert seen == [("first",), ("first", "second"), ("first", "second", "third")]
    timer.call_after(1, lambda: called.append("later"))
    await clock.advance(1)
    assert called[-1] == "later"


async def test_it_comes_after_its_seconds() -> None:
    clock = ManualClock()
    deadline = TurnDeadline(SharedTimer(clock), clock, 10)
    done: list[str] = []

    async def work() -> None:
        with deadline:
            await clock.advance(9.9)
            done.append("most")
            await clock.advance(0.2)
            done.append("all")

    with pytest.raises(TimeoutError):
        await work()
    assert done == ["most"]
    assert deadline.expired()


async def test_it_pauses_while_a_person_is_waited_for() -> None:
    clock = ManualClock()
    deadline = TurnDeadline(SharedTimer(clock), clock, 10)
    done: list[str] = []

    async def work() -> None:
        with deadline:
            await clock.advance(6)
            with deadline.paused():
                await clock.advance(300)
                with deadline.paused():
                    await clock.advance(300)
            await clock.advance(3.9)
            done.append("most")
            await clock.advance(0.2)
            done.append("all")

    with pytest.raises(TimeoutError):
        await work()
    assert done == ["most"]


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
async def test_it_continues_when_what_it_paused_for_fails_or_is_cancelled(
    error: type[BaseException],
) -> None:
    clock = ManualClock()
    deadline = TurnDeadline(SharedTimer(clock), clock, 10)

    async def work() -> None:
        with deadline:
            with suppress(error), deadline.paused():
                await clock.advance(300)
                raise error
            await clock.advance(9.9)
            assert not deadline.expired()
            await clock.advance(0.2)

    with pytest.raises(TimeoutError):
        await work()
    assert deadline.expired()


async def test_it_leaves_nothing_behind_when_the_work_is_done() -> None:
    clock = ManualClock()
    with TurnDeadline(SharedTimer(clock), clock, 10) as deadline:
        pass
    await clock.advance(20)
    assert not deadline.expired()


class _OnePlace:
    """Room for one turn."""

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(1)

    async def enter(self) -> None:
        await self.slots.acquire()

    def leave(self) -> None:
        self.slots.release()

    async def suspend(self) -> None:
        self.leave()

    async def resume(self) -> None:
        await self.enter()


async def test_a_turn_that_is_away_leaves_its_room_to_others_until_it_comes_back() -> None:
    room = _OnePlace()
    deadline = _deadline()
    await room.enter()
    with deadline:
        absence = TurnSuspension(deadline, room)
        async with absence.waiting():
            assert not room.slots.locked()
            async with absence.waiting():
                assert not room.slots.locked()
        assert room.slots.locked()


async def test_a_turn_that_is_stopped_while_it_is_away_does_not_wait_for_room() -> None:
    room, away = _OnePlace(), asyncio.Event()
    deadline = _deadline()

    async def turn() -> None:
        with deadline:
            await room.enter()
            async with TurnSuspension(deadline, room).waiting():
                away.set()
                await asyncio.Event().wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        task = group.create_task(turn())
        await away.wait()
        await room.enter()
        task.cancel()
    assert task.cancelled()
    assert room.slots.locked()


async def test_a_turn_whose_sub_agent_was_cut_off_while_it_was_away_takes_its_room_again() -> None:
    room, away = _OnePlace(), asyncio.Event()
    deadline = _deadline()

    async def sub_agent(absence: TurnSuspension) -> None:
        async with absence.waiting():
            away.set()
            await asyncio.Event().wait()

    await room.enter()
    with deadline:
        absence = TurnSuspension(deadline, room)
        async with asyncio.timeout(30), absence.delegating(), asyncio.TaskGroup() as group:
            task = group.create_task(sub_agent(absence))
            await away.wait()
            assert not room.slots.locked()
            task.cancel()
        assert room.slots.locked()
