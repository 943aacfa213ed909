"""A turn's deadline: it comes after so much work, and waiting for a person is none."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.runtime.deadline import TurnDeadline, TurnSuspension


async def test_it_comes_after_its_seconds() -> None:
    clock = ManualClock()
    deadline = TurnDeadline(clock, 10)
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
    deadline = TurnDeadline(clock, 10)
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
    deadline = TurnDeadline(clock, 10)

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
    with TurnDeadline(clock, 10) as deadline:
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
    deadline = TurnDeadline(ManualClock(), 10)
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
    deadline = TurnDeadline(ManualClock(), 10)

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
    deadline = TurnDeadline(ManualClock(), 10)

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
