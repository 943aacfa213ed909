"""A stop that was asked for ends the turn; a shutdown stays a cancellation."""

from __future__ import annotations

import asyncio

from pipeline.domain.errors import TurnFailed
from pipeline.runtime.stopping import StopSignal


async def _guarded(stop: StopSignal, begun: asyncio.Event) -> str:
    try:
        with stop.guard():
            begun.set()
            await asyncio.Event().wait()
    except TurnFailed as failed:
        # The turn continues to write its ending: the cancellation must not strike again here.
        await asyncio.sleep(0)
        return failed.reason
    return "finished"


async def test_a_request_interrupts_the_guarded_part_and_nothing_after_it() -> None:
    stop, begun = StopSignal(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(_guarded(stop, begun))
        await begun.wait()
        stop.request()
        stop.request()
    assert turn.result() == "stopped"


async def test_a_request_before_the_guard_stops_as_it_is_entered() -> None:
    stop = StopSignal()
    stop.request()
    assert await _guarded(stop, asyncio.Event()) == "stopped"


async def test_a_request_after_the_guard_changes_nothing() -> None:
    stop = StopSignal()
    with stop.guard():
        pass
    stop.request()
    await asyncio.sleep(0)
    assert stop.requested


async def test_a_stop_that_an_sdk_turned_into_its_own_error_is_still_a_stop_and_leaves_no_trace() -> None:
    stop, begun = StopSignal(), asyncio.Event()

    async def wrapped() -> tuple[str, int]:
        task = asyncio.current_task()
        assert task is not None
        try:
            with stop.guard():
                try:
                    begun.set()
                    await asyncio.Event().wait()
                except asyncio.CancelledError as error:
                    raise ConnectionError("closed") from error
        except TurnFailed as failed:
            return failed.reason, task.cancelling()
        return "", task.cancelling()

    async with asyncio.TaskGroup() as group:
        turn = group.create_task(wrapped())
        await begun.wait()
        stop.request()
    assert turn.result() == ("stopped", 0)


async def test_a_shutdown_stays_a_cancellation() -> None:
    stop, begun = StopSignal(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(_guarded(stop, begun))
        await begun.wait()
        turn.cancel()
    assert turn.cancelled()


async def test_a_shutdown_that_meets_a_stop_stays_a_cancellation() -> None:
    stop, begun = StopSignal(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(_guarded(stop, begun))
        await begun.wait()
        stop.request()
        turn.cancel()
    assert turn.cancelled()
