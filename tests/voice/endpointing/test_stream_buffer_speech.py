"""The manager beside a live ear: who speaks right now, when words ended, and chunks out of order."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.voice.endpointing.buffer_harness import THREAD, gathering
from voice.endpointing import stream_buffer
from voice.endpointing.flush_policy import FlushSettings

REQUEST = "Please summarise this"


async def test_while_somebody_speaks_no_pause_is_over() -> None:
    async with gathering() as harness:
        await harness.say(REQUEST)
        harness.manager.speaking(THREAD, True)
        await harness.clock.advance(6)
        assert harness.receiver.seen == []
        harness.manager.speaking(THREAD, False)
        await harness.clock.advance(10)
        assert harness.receiver.seen == [(7.5, "complete_thought", REQUEST)]


async def test_a_whole_sentence_waits_for_the_voice_that_continues() -> None:
    async with gathering() as harness:
        harness.manager.speaking(THREAD, True)
        await harness.say("Hello there my friend.")
        await harness.clock.advance(5)
        assert harness.receiver.seen == []
        await harness.say("How are you today?")
        harness.manager.speaking(THREAD, False)
        await harness.clock.advance(0)
        assert harness.receiver.seen == [(5.0, "sentence", "Hello there my friend. How are you today?")]


async def test_anyone_who_speaks_without_end_is_heard_after_fifteen_seconds() -> None:
    async with gathering() as harness:
        harness.manager.speaking(THREAD, True)
        for _ in range(20):
            await harness.say("and on")
            await harness.clock.advance(1)
        assert [(at, reason) for at, reason, _ in harness.receiver.seen] == [(15.0, "max_time")]


async def test_a_pause_is_counted_from_the_end_of_the_words_and_not_from_their_recognition() -> None:
    async with gathering() as harness:
        await harness.clock.advance(10)
        harness.manager.speaking(THREAD, True)
        await harness.clock.advance(1.2)
        await harness.say(REQUEST, spoken_at=10.3)
        harness.manager.speaking(THREAD, False, at=10.3)
        await harness.clock.advance(5)
        assert harness.receiver.seen == [(11.8, "complete_thought", REQUEST)]


async def test_words_that_were_recognised_late_go_at_once() -> None:
    async with gathering() as harness:
        await harness.clock.advance(10)
        result = await harness.say(REQUEST, spoken_at=8.0)
        assert result.should_process
        assert harness.receiver.seen == [(10.0, "complete_thought", REQUEST)]


async def test_words_from_the_future_are_from_now() -> None:
    async with gathering() as harness:
        await harness.say("yes", spoken_at=1000.0)
        await harness.clock.advance(3)
        assert harness.receiver.seen == [(3.0, "silence", "yes")]


async def test_a_voice_without_words_leaves_nothing() -> None:
    async with gathering() as harness:
        harness.manager.speaking(THREAD, True)
        harness.manager.speaking(THREAD, False)
        await harness.clock.advance(60)
        assert harness.receiver.calls == 0
        assert not harness.manager.buffer_status(THREAD).exists


@pytest.mark.parametrize("seed", range(5))
async def test_transcripts_out_of_order_are_one_text_in_order(seed: int) -> None:
    order = list(range(8))
    random.Random(seed).shuffle(order)
    async with gathering() as harness:
        for number in order:
            await harness.say(f"w{number}", sequence=number)
            await harness.clock.advance(0.1)
        await harness.clock.advance(10)
        assert [text for _, _, text in harness.receiver.seen] == [" ".join(f"w{n}" for n in range(8))]


async def test_a_chunk_that_comes_again_is_ignored() -> None:
    async with gathering() as harness:
        await harness.say("one", sequence=0)
        again = await harness.say("one", sequence=0)
        assert (again.should_process, again.buffered_content) == (False, "one")
        await harness.clock.advance(10)
        assert (await harness.say("one", sequence=0)).should_process is False
        await harness.clock.advance(10)
        assert harness.receiver.seen == [(3.0, "silence", "one")]


async def test_a_gap_holds_a_sentence_back_until_it_is_filled() -> None:
    async with gathering() as harness:
        assert not (await harness.say("is my dear old friend.", sequence=1)).should_process
        await harness.clock.advance(8)
        assert harness.receiver.seen == []
        assert (await harness.say("This", sequence=0)).should_process
        assert harness.receiver.seen == [(8.0, "sentence", "This is my dear old friend.")]


async def test_the_end_of_speech_waits_for_a_gap_to_be_filled() -> None:
    async with gathering() as harness:
        await harness.say("turn", sequence=0)
        await harness.say("off", is_complete=True, sequence=2)
        assert harness.manager.buffer_status(THREAD).state == "complete"
        await harness.clock.advance(4)
        assert (await harness.say("it", sequence=1)).reason == "Speech marked as complete"
        assert harness.receiver.seen == [(4.0, "complete", "turn it off")]


async def test_a_chunk_without_words_fills_its_gap() -> None:
    async with gathering() as harness:
        await harness.say("off", is_complete=True, sequence=1)
        assert (await harness.say("", sequence=0)).should_process
        assert harness.receiver.seen == [(0.0, "complete", "off")]


async def test_a_gap_that_stays_is_given_up_at_the_deadline_and_holds_nothing_after_it() -> None:
    async with gathering() as harness:
        await harness.say("one", sequence=0)
        await harness.say("three", sequence=2)
        await harness.clock.advance(15)
        assert harness.receiver.seen == [(15.0, "max_time", "one three")]
        await harness.say("four", sequence=3)
        await harness.clock.advance(4)
        await harness.say("five", sequence=4)
        await harness.say("two", sequence=1)
        await harness.clock.advance(10)
        assert harness.receiver.seen[1:] == [(18.0, "silence", "four"), (22.0, "silence", "two five")]


async def test_a_sequence_below_zero_is_a_mistake() -> None:
    async with gathering() as harness:
        with pytest.raises(ValueError, match="count from 0"):
            await harness.say("one", sequence=-1)


async def test_a_buffer_that_grows_too_large_is_flushed() -> None:
    async with gathering(settings=FlushSettings(max_chars=50)) as harness:
        harness.manager.speaking(THREAD, True)
        for number in range(30):
            await harness.say(f"word{number}")
        assert {reason for _, reason, _ in harness.receiver.seen} == {"max_time"}
        assert max(len(text) for _, _, text in harness.receiver.seen) < 60
        await harness.manager.force_flush(THREAD)
        said = " ".join(text for _, _, text in harness.receiver.seen)
        assert said == " ".join(f"word{number}" for number in range(30))


async def test_of_too_many_threads_the_longest_waiting_is_flushed() -> None:
    async with gathering() as harness:
        for number in range(stream_buffer.MAX_BUFFERS + 3):
            await harness.manager.add_speech_chunk(f"t{number}", "hm")
        await asyncio.sleep(0)
        assert [one.thread_id for one in harness.receiver.flushed] == ["t0", "t1", "t2"]
        assert {one.reason for one in harness.receiver.flushed} == {"max_time"}


async def test_threads_that_are_through_are_forgotten() -> None:
    async with gathering() as harness:
        for number in range(50):
            await harness.manager.add_speech_chunk(f"t{number}", "hm", is_complete=True)
            harness.manager.speaking(f"t{number}", False)
            await harness.manager.force_flush(f"t{number}")
        assert harness.manager._threads == {}
