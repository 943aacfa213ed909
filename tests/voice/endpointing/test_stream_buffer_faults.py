"""The manager when things go wrong: receivers and stores that fail, restarts, shutdowns, interleavings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from pipeline.domain.clock import ManualClock
from tests.voice.endpointing.buffer_harness import THREAD, BufferHarness, FaultyBuffers, Receiver, gathering

REQUEST = "Please summarise this"


@pytest.fixture
async def buffers() -> AsyncIterator[FaultyBuffers]:
    made = FaultyBuffers()
    await made.store.open()
    yield made
    await made.store.close()


async def test_a_buffer_whose_flush_failed_is_tried_again_and_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with gathering() as harness:
        harness.receiver.failures = 3
        with caplog.at_level(logging.WARNING):
            assert (await harness.say("ok", is_complete=True)).should_process
        assert "the inbox is full" in caplog.text
        assert harness.manager.buffer_status(THREAD).state == "flushing"
        await harness.clock.advance(60)
        assert harness.receiver.calls == 4
        assert harness.receiver.seen == [(1.0 + 2.0 + 5.0, "complete", "ok")]


async def test_what_follows_a_failed_flush_waits_for_it_and_is_another_buffer() -> None:
    async with gathering() as harness:
        harness.receiver.failures = 1
        await harness.say("one", is_complete=True)
        await harness.say("two", is_complete=True)
        await harness.say("three")
        assert harness.receiver.calls == 1
        assert harness.manager.buffer_status(THREAD).content == "one two three"
        await harness.clock.advance(10)
        assert [text for _, _, text in harness.receiver.seen] == ["one", "two", "three"]
        assert len({one.generation for one in harness.receiver.flushed}) == 3


async def test_force_does_not_wait_for_the_next_try() -> None:
    async with gathering() as harness:
        harness.receiver.failures = 1
        await harness.say("one", is_complete=True)
        await harness.say("two")
        assert await harness.manager.force_flush(THREAD) == "two"
        assert [text for _, _, text in harness.receiver.seen] == ["one", "two"]
        await harness.clock.advance(60)
        assert harness.receiver.calls == 3


async def test_a_try_again_has_the_same_generation() -> None:
    async with gathering() as harness:
        generations = []
        receive = harness.receiver.__call__

        async def note(flushed: object) -> None:
            generations.append(getattr(flushed, "generation", None))
            await receive(flushed)  # type: ignore[arg-type]  # whatever the manager gives

        harness.manager._on_flush = note
        harness.receiver.failures = 2
        await harness.say("ok", is_complete=True)
        await harness.clock.advance(10)
        assert len(generations) == 3
        assert len(set(generations)) == 1


async def test_a_chunk_that_comes_during_a_flush_opens_the_next_buffer() -> None:
    async with gathering() as harness, asyncio.TaskGroup() as group:
        harness.receiver.open.clear()
        first = group.create_task(harness.say("one", is_complete=True))
        await harness.receiver.arrived.wait()
        assert not (await harness.say("two")).should_process
        assert not first.done()
        harness.receiver.open.set()
        assert (await first).buffered_content == "one"
        assert harness.manager.buffer_status(THREAD).content == "two"
        await harness.clock.advance(10)
        assert harness.receiver.seen == [(0.0, "complete", "one"), (3.0, "silence", "two")]


async def test_a_chunk_that_comes_while_a_timer_flushes_does_not_cut_it_off() -> None:
    async with gathering() as harness:
        harness.receiver.open.clear()
        await harness.say("one")
        await harness.clock.advance(3)
        assert harness.receiver.calls == 1
        await harness.say("two")
        harness.receiver.open.set()
        await harness.clock.advance(10)
        assert [text for _, _, text in harness.receiver.seen] == ["one", "two"]
        assert harness.receiver.calls == 2


async def test_a_caller_that_gives_up_during_a_flush_loses_nothing() -> None:
    async with gathering() as harness:
        harness.receiver.open.clear()
        async with asyncio.TaskGroup() as group:
            adding = group.create_task(harness.say("one", is_complete=True))
            await harness.receiver.arrived.wait()
            adding.cancel()
        harness.receiver.open.set()
        assert harness.receiver.flushed == []
        await harness.clock.advance(5)
        assert harness.receiver.seen == [(1.0, "complete", "one")]


@pytest.mark.parametrize("turns", range(1, 12))
async def test_a_caller_that_gives_up_at_any_moment_loses_and_delays_nothing(
    buffers: FaultyBuffers, turns: int
) -> None:
    async with gathering(buffers=buffers) as harness:
        async with asyncio.TaskGroup() as group:
            adding = group.create_task(harness.say("one", is_complete=True))
            for _ in range(turns):
                await asyncio.sleep(0)
            adding.cancel()
        await harness.clock.advance(5)
        assert [text for _, _, text in harness.receiver.seen] == ["one"]


async def test_timer_force_and_complete_at_one_moment_flush_once() -> None:
    async with gathering() as harness:
        await harness.say("one")
        async with asyncio.TaskGroup() as group:
            group.create_task(harness.clock.advance(3))
            for _ in range(3):
                group.create_task(harness.manager.force_flush(THREAD))
            group.create_task(harness.say("", is_complete=True))
        await harness.clock.advance(10)
        assert [text for _, _, text in harness.receiver.seen] == ["one"]
        assert harness.receiver.calls == 1


async def test_many_chunks_and_flushes_at_once_lose_and_double_nothing(buffers: FaultyBuffers) -> None:
    async with gathering(buffers=buffers) as harness:
        async with asyncio.TaskGroup() as group:
            for number in range(60):
                group.create_task(harness.say(f"w{number}", is_complete=number % 7 == 0))
                if number % 11 == 0:
                    group.create_task(harness.manager.force_flush(THREAD))
        await harness.manager.force_flush(THREAD)
        said = " ".join(text for _, _, text in harness.receiver.seen)
        assert said == " ".join(f"w{number}" for number in range(60))
        assert await buffers.buffers() == ()


async def test_what_was_added_is_kept_before_the_call_returns_and_goes_when_it_was_received(
    buffers: FaultyBuffers,
) -> None:
    async with gathering(buffers=buffers) as harness:
        await harness.say("one")
        await harness.say("two")
        ((_, body),) = await buffers.buffers()
        assert [chunk[0] for chunk in body["chunks"]] == ["one", "two"]
        assert body["created_at"] == harness.clock.now()
        await harness.clock.advance(3)
        assert harness.receiver.seen == [(3.0, "silence", "one two")]
        assert await buffers.buffers() == ()


async def test_a_crash_in_the_middle_of_a_dictation_loses_nothing(buffers: FaultyBuffers) -> None:
    clock = ManualClock()
    crashed = BufferHarness(clock=clock, buffers=buffers)
    await crashed.say("the weather is", sequence=0)
    await clock.advance(1)
    await crashed.crash()
    async with gathering(clock=clock, buffers=buffers) as harness:
        assert await harness.manager.restore() == 1
        await harness.say("nice and", sequence=1)
        await clock.advance(10)
        assert harness.receiver.seen == [(4.0, "silence", "the weather is nice and")]
    assert crashed.receiver.calls == 0


async def test_after_a_restart_what_is_due_by_the_wall_clock_goes_at_once(buffers: FaultyBuffers) -> None:
    clock = ManualClock()
    harness = BufferHarness(clock=clock, buffers=buffers)
    await harness.say(REQUEST)
    await harness.manager.close()
    assert harness.receiver.calls == 0
    clock.step_wall(60)
    async with gathering(clock=clock, buffers=buffers) as follower:
        assert await follower.manager.restore() == 1
        assert follower.receiver.seen == [(0.0, "max_time", REQUEST)]
        assert await buffers.buffers() == ()
        assert await follower.manager.restore() == 0


async def test_a_buffer_that_was_being_flushed_gathers_no_more_after_a_crash(buffers: FaultyBuffers) -> None:
    clock = ManualClock()
    crashed = BufferHarness(clock=clock, buffers=buffers)
    crashed.receiver.open.clear()
    async with asyncio.TaskGroup() as group:
        adding = group.create_task(crashed.say("ok", is_complete=True))
        await crashed.receiver.arrived.wait()
        ((generation, body),) = await buffers.buffers()
        adding.cancel()
    assert body["reason"] == "complete"
    await crashed.crash()
    async with gathering(clock=clock, buffers=buffers) as harness:
        await harness.manager.restore()
        await harness.say("more")
        await clock.advance(10)
        assert [text for _, _, text in harness.receiver.seen] == ["ok", "more"]
        assert harness.receiver.flushed[0].generation == generation


async def test_after_a_restart_buffers_come_in_the_order_in_which_they_were_flushed(
    buffers: FaultyBuffers,
) -> None:
    clock = ManualClock()
    crashed = BufferHarness(clock=clock, buffers=buffers)
    crashed.receiver.failures = 9
    await clock.advance(10)
    for text, late_s in (("one", 0.0), ("two", 2.0), ("three", 1.0)):
        await crashed.say(text, is_complete=True, spoken_at=clock.monotonic() - late_s)
    await crashed.crash()
    async with gathering(clock=clock, buffers=buffers) as harness:
        assert await harness.manager.restore() == 3
        assert [text for _, _, text in harness.receiver.seen] == ["one", "two", "three"]


async def test_a_kept_body_that_cannot_be_read_stays_and_stops_no_one(
    buffers: FaultyBuffers, caplog: pytest.LogCaptureFixture
) -> None:
    await buffers.keep_buffer("strange", {"hello": "world"}, at=0.0)
    async with gathering(buffers=buffers) as harness:
        with caplog.at_level(logging.WARNING):
            assert await harness.manager.restore() == 0
        assert "cannot be read" in caplog.text
        assert [key for key, _ in await buffers.buffers()] == ["strange"]


async def test_a_failing_store_does_not_stop_buffering(
    buffers: FaultyBuffers, caplog: pytest.LogCaptureFixture
) -> None:
    async with gathering(buffers=buffers) as harness:
        buffers.broken = True
        with caplog.at_level(logging.WARNING):
            await harness.say("yes")
        assert "could not be kept" in caplog.text
        await harness.clock.advance(3)
        assert harness.receiver.seen == [(3.0, "silence", "yes")]


async def test_a_recovered_store_gets_everything_with_the_next_chunk(buffers: FaultyBuffers) -> None:
    async with gathering(buffers=buffers) as harness:
        buffers.broken = True
        await harness.say("one")
        buffers.broken = False
        await harness.say("two")
        ((_, body),) = await buffers.buffers()
        assert [chunk[0] for chunk in body["chunks"]] == ["one", "two"]


async def test_a_shutdown_with_a_store_keeps_the_buffers_for_the_next_start(buffers: FaultyBuffers) -> None:
    async with gathering(buffers=buffers) as harness:
        await harness.manager.add_speech_chunk("ann", "one")
        await harness.manager.add_speech_chunk("ben", "two")
    assert harness.receiver.calls == 0
    assert len(await buffers.buffers()) == 2


async def test_a_shutdown_without_a_store_flushes() -> None:
    async with gathering() as harness:
        await harness.manager.add_speech_chunk("ann", "one")
        await harness.manager.add_speech_chunk("ben", "two")
    assert [(reason, text) for _, reason, text in harness.receiver.seen] == [
        ("forced", "one"),
        ("forced", "two"),
    ]


async def test_a_shutdown_with_a_broken_store_flushes(buffers: FaultyBuffers) -> None:
    async with gathering(buffers=buffers) as harness:
        buffers.broken = True
        await harness.say("one")
    assert [(reason, text) for _, reason, text in harness.receiver.seen] == [("forced", "one")]


async def test_a_shutdown_says_so_when_speech_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    async with gathering() as harness:
        await harness.say("one")
        harness.receiver.failures = 1
    assert "speech is lost" in caplog.text


async def test_a_shutdown_lets_through_what_is_being_handed_over(buffers: FaultyBuffers) -> None:
    async with gathering(buffers=buffers) as harness, asyncio.TaskGroup() as group:
        harness.receiver.open.clear()
        await harness.say("one")
        await harness.clock.advance(3)
        closing = group.create_task(harness.manager.close())
        await asyncio.sleep(0)
        assert not closing.done()
        harness.receiver.open.set()
        await closing
        assert harness.receiver.seen == [(3.0, "silence", "one")]
        assert await buffers.buffers() == ()


async def test_a_shutdown_that_is_cut_off_leaves_no_task() -> None:
    harness = BufferHarness()
    harness.receiver.open.clear()
    await harness.say("one")
    await harness.clock.advance(3)
    async with asyncio.TaskGroup() as group:
        closing = group.create_task(harness.manager.close())
        await asyncio.sleep(0)
        closing.cancel()
    assert len(asyncio.all_tasks()) == 1


async def test_after_the_shutdown_nothing_is_taken_silently() -> None:
    async with gathering() as harness:
        await harness.manager.close()
        with pytest.raises(RuntimeError, match="closed"):
            await harness.say("one")


async def test_a_receiver_that_had_it_before_the_crash_knows_it_by_its_generation(
    buffers: FaultyBuffers,
) -> None:
    clock = ManualClock()
    receiver = Receiver(clock)
    async with gathering(clock=clock, buffers=buffers, receiver=receiver) as harness:
        buffers.drops_broken = True
        await harness.say("one", is_complete=True)
        buffers.drops_broken = False
    async with gathering(clock=clock, buffers=buffers, receiver=receiver) as follower:
        await follower.manager.restore()
    assert [text for _, _, text in receiver.seen] == ["one", "one"]
    assert len({one.generation for one in receiver.flushed}) == 1
    assert await buffers.buffers() == ()
