"""`StreamBufferManager` over time: one speaker's timeline, and what an earlier form got wrong."""

from __future__ import annotations

import asyncio

import pytest

from tests.voice.endpointing.buffer_harness import THREAD, gathering
from voice.endpointing.stream_buffer import BufferStatus

REQUEST = "Please summarise this"
OTHER_REQUEST = "Please do it again now"


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        ("Please summarise this", 1.5, "complete_thought"),
        ("the weather is nice and", 3.0, "silence"),
        ("how do I configure the", 3.0, "silence"),
        ("yes", 3.0, "silence"),
        ("thank you", 3.0, "silence"),
        ("Hello there my friend.", 0.0, "sentence"),
        ("今日はとても天気がいいので散歩に行きました。", 0.0, "sentence"),
        ("Yesterday I paid $3.", 1.5, "complete_thought"),
        ("I would like to see Dr.", 3.0, "silence"),
    ],
)
async def test_one_chunk_is_flushed_in_its_time(text: str, at: float, reason: str) -> None:
    async with gathering() as harness:
        result = await harness.say(text)
        assert result.should_process == (at == 0.0)
        assert result.buffered_content == text
        if at:
            await harness.clock.advance(at - 0.01)
            assert harness.receiver.seen == []
        await harness.clock.advance(30)
        assert harness.receiver.seen == [(at, reason, text)]


async def test_speech_marked_as_complete_is_flushed_at_once_however_short() -> None:
    async with gathering() as harness:
        result = await harness.say("ok", is_complete=True)
        assert (result.should_process, result.reason) == (True, "Speech marked as complete")
        assert harness.receiver.seen == [(0.0, "complete", "ok")]


async def test_the_reasons_are_the_seeds_words() -> None:
    async with gathering() as harness:
        assert (await harness.say("yes")).reason == "Buffer too short for meaningful processing"
        assert (
            await harness.say("and the next thing is")
        ).reason == "Continuing to buffer - user still speaking"
        assert (await harness.say("this.")).reason == "Complete sentence and thought detected"
        await harness.say("so", spoken_at=harness.clock.monotonic())
        await harness.clock.advance(2)
        late = await harness.say("on", spoken_at=harness.clock.monotonic() - 14.9)
        assert late.should_process is False
        later = await harness.say("then", spoken_at=harness.clock.monotonic() - 15)
        assert (later.should_process, later.reason) == (True, "Maximum buffer time exceeded (15s)")


async def test_chunks_without_end_are_flushed_fifteen_seconds_after_the_first() -> None:
    async with gathering() as harness:
        for _ in range(20):
            await harness.say("and")
            await harness.clock.advance(1.0)
        assert harness.receiver.seen == [(15.0, "max_time", " ".join(["and"] * 15))]


async def test_the_deadline_needs_no_chunk_to_fire() -> None:
    async with gathering() as harness:
        for _ in range(6):
            await harness.say("and", spoken_at=harness.clock.monotonic())
            await harness.clock.advance(2.4)
        harness.manager.speaking(THREAD, True)
        await harness.clock.advance(10)
        assert [(at, reason) for at, reason, _ in harness.receiver.seen] == [(15.0, "max_time")]


async def test_a_chunk_at_the_very_moment_of_the_pause_opens_the_next_buffer() -> None:
    async with gathering() as harness:
        await harness.say(REQUEST)
        await harness.clock.advance(1.5)
        await harness.say("and that")
        await harness.clock.advance(10)
        assert harness.receiver.seen == [(1.5, "complete_thought", REQUEST), (4.5, "silence", "and that")]


async def test_a_chunk_just_before_the_pause_begins_it_again() -> None:
    async with gathering() as harness:
        await harness.say(REQUEST)
        await harness.clock.advance(1.499)
        await harness.say("for me today")
        await harness.clock.advance(10)
        assert harness.receiver.seen == [(2.999, "complete_thought", REQUEST + " for me today")]


async def test_an_old_timer_does_not_flush_a_newer_buffer() -> None:
    async with gathering() as harness:
        await harness.say(REQUEST)
        await harness.clock.advance(1.0)
        assert await harness.manager.force_flush(THREAD) == REQUEST
        await harness.clock.advance(0.2)
        await harness.say(OTHER_REQUEST)
        await harness.clock.advance(1.49)
        assert len(harness.receiver.flushed) == 1
        await harness.clock.advance(10)
        assert harness.receiver.seen == [
            (1.0, "forced", REQUEST),
            (2.7, "complete_thought", OTHER_REQUEST),
        ]


async def test_an_immediate_flush_takes_its_timer_with_it() -> None:
    async with gathering() as harness:
        await harness.say("so")
        await harness.clock.advance(2.0)
        await harness.say("stop", is_complete=True)
        await harness.say("and")
        await harness.clock.advance(2.9)
        assert [text for _, _, text in harness.receiver.seen] == ["so stop"]
        await harness.clock.advance(1)
        assert harness.receiver.seen[1] == (5.0, "silence", "and")


async def test_what_a_timer_flushes_is_handed_over_once() -> None:
    async with gathering() as harness:
        await harness.say("yes")
        await harness.clock.advance(60)
        assert harness.receiver.calls == 1
        assert await harness.manager.force_flush(THREAD) is None


@pytest.mark.parametrize("text", ["", "  ", "\n"])
async def test_what_is_empty_is_never_flushed(text: str) -> None:
    async with gathering() as harness:
        result = await harness.say(text, is_complete=True)
        assert (result.should_process, result.buffered_content) == (False, "")
        assert await harness.manager.force_flush(THREAD) is None
        await harness.clock.advance(60)
        assert harness.receiver.calls == 0


async def test_complete_without_words_flushes_what_is_there() -> None:
    async with gathering() as harness:
        await harness.say("turn it off")
        result = await harness.say("", is_complete=True)
        assert (result.should_process, result.buffered_content) == (True, "turn it off")
        assert harness.receiver.seen == [(0.0, "complete", "turn it off")]


async def test_two_threads_do_not_hear_each_other() -> None:
    async with gathering() as harness:
        for number, word in enumerate(["what", "please", "is", "close", "the", "the", "time", "gate"]):
            await harness.manager.add_speech_chunk("ann" if number % 2 == 0 else "ben", word)
            await harness.clock.advance(0.1)
        await harness.manager.add_speech_chunk("ben", "over there")
        await harness.clock.advance(10)
        said = {one.thread_id: (one.text, one.reason) for one in harness.receiver.flushed}
        assert said == {
            "ann": ("what is the time", "silence"),
            "ben": ("please close the gate over there", "complete_thought"),
        }


async def test_a_force_in_one_thread_leaves_the_other_alone() -> None:
    async with gathering() as harness:
        await harness.manager.add_speech_chunk("ann", "one")
        await harness.manager.add_speech_chunk("ben", "two")
        assert await harness.manager.force_flush("ann") == "one"
        assert harness.manager.buffer_status("ben").content == "two"


async def test_chunks_of_one_moment_keep_the_order_of_their_calls() -> None:
    async with gathering() as harness:
        await asyncio.gather(*(harness.say(f"w{number}") for number in range(50)))
        assert await harness.manager.force_flush(THREAD) == " ".join(f"w{number}" for number in range(50))


async def test_the_status_says_what_is_there_how_old_it_is_and_what_becomes_of_it() -> None:
    nothing = BufferStatus(exists=False, content="", age_s=0.0, state="none")
    async with gathering() as harness:
        assert harness.manager.buffer_status(THREAD) == nothing
        await harness.say("hello")
        await harness.clock.advance(1)
        await harness.say("there")
        await harness.clock.advance(0.5)
        status = harness.manager.buffer_status(THREAD)
        assert status == BufferStatus(exists=True, content="hello there", age_s=0.5, state="active")
        harness.manager.speaking(THREAD, True)
        assert harness.manager.buffer_status(THREAD).state == "speaking"
        harness.manager.speaking(THREAD, False)
        await harness.clock.advance(60)
        assert harness.manager.buffer_status(THREAD) == nothing


async def test_the_language_of_the_chunks_goes_with_them() -> None:
    async with gathering() as harness:
        await harness.say("Bitte fass das zusammen", language="de")
        await harness.say("danke")
        await harness.clock.advance(10)
        (flushed,) = harness.receiver.flushed
        assert (flushed.language, flushed.chunks, flushed.thread_id) == ("de", 2, THREAD)
