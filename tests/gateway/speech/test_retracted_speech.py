"""Continuing after a pause that was taken for the end: one question, asked once, of all the words."""

from __future__ import annotations

from gateway.speech.live_stream import LiveAudioStream
from tests.gateway.live_speech_harness import ANN, HERE, LiveSpeechHarness, open_live_speech
from voice.transcription.scripted_transcriber import ScriptedAnswer

BEGINNING = "And so my fellow Americans."
REST = "Ask not what your country can do for you."
THREAD = HERE.encode()


async def said(harness: LiveSpeechHarness, microphone: LiveAudioStream) -> None:
    """The beginning is a message, and its turn is at work."""
    await harness.speak(microphone, 1.0, 1.5)
    [message] = harness.fake_inbox.messages
    harness.running[THREAD] = message.message_id


async def continues(harness: LiveSpeechHarness, microphone: LiveAudioStream, spoken_s: float = 1.0) -> None:
    """The voice comes back, and the turn is stopped for it."""
    await harness.speak(microphone, 0.3)
    harness.running.pop(THREAD, None)
    harness.answering.clear()
    await harness.speak(microphone, spoken_s - 0.3, 2.0)


async def test_words_that_follow_a_pause_are_asked_together_with_those_before_it() -> None:
    async with open_live_speech(BEGINNING, REST) as harness:
        microphone = await harness.open_stream()
        await said(harness, microphone)
        await continues(harness, microphone)
        [stop] = harness.fake_inbox.stops
        assert stop.author == ANN
        assert harness.fake_inbox.said == [("ann", BEGINNING), ("ann", f"{BEGINNING} {REST}")]


async def test_who_speaks_while_it_thinks_long_is_answered_once_and_to_everything() -> None:
    async with open_live_speech(BEGINNING, REST) as harness:
        microphone = await harness.open_stream()
        await said(harness, microphone)
        await harness.speak(microphone, 0.0, 8.0)
        await continues(harness, microphone)
        assert len(harness.fake_inbox.stops) == 1
        assert harness.fake_inbox.said[-1] == ("ann", f"{BEGINNING} {REST}")


async def test_an_answer_that_began_at_once_is_taken_back_for_the_rest_of_the_sentence() -> None:
    async with open_live_speech(BEGINNING, REST) as harness:
        microphone = await harness.open_stream()
        await said(harness, microphone)
        harness.answering.add(THREAD)
        await continues(harness, microphone)
        assert len(harness.fake_inbox.stops) == 1
        assert harness.fake_inbox.said[-1] == ("ann", f"{BEGINNING} {REST}")


async def test_what_is_said_into_an_answer_that_was_heard_for_a_while_is_a_separate_message() -> None:
    async with open_live_speech(BEGINNING, REST) as harness:
        microphone = await harness.open_stream()
        await said(harness, microphone)
        harness.answering.add(THREAD)
        await harness.speak(microphone, 0.0, 5.0)
        await continues(harness, microphone)
        assert len(harness.fake_inbox.stops) == 1
        assert harness.fake_inbox.said == [("ann", BEGINNING), ("ann", REST)]


async def test_a_cough_while_it_thinks_has_the_question_asked_again() -> None:
    async with open_live_speech(BEGINNING) as harness:
        microphone = await harness.open_stream()
        await said(harness, microphone)
        await harness.speak(microphone, 0.2)
        harness.running.clear()
        await harness.speak(microphone, 0.0, 2.0)
        assert len(harness.fake_inbox.stops) == 1
        assert harness.fake_inbox.said == [("ann", BEGINNING)] * 2
        first, second = harness.fake_inbox.messages
        assert first.message_id != second.message_id
        assert first.speech == second.speech


async def test_a_question_that_is_taken_back_when_the_microphone_is_closed_is_asked_again() -> None:
    async with open_live_speech(BEGINNING) as harness:
        microphone = await harness.open_stream()
        await said(harness, microphone)
        await harness.speak(microphone, 0.16)
        harness.running.clear()
        await harness.until_done(microphone.close())
        await harness.clock.advance(1.0)
        assert harness.fake_inbox.said == [("ann", BEGINNING)] * 2


async def test_three_parts_of_one_sentence_are_one_question() -> None:
    parts: tuple[ScriptedAnswer, ...] = (BEGINNING, "And my friends in all countries.", REST)
    async with open_live_speech(*parts) as harness:
        microphone = await harness.open_stream()
        await said(harness, microphone)
        await continues(harness, microphone)
        harness.running[THREAD] = harness.fake_inbox.messages[-1].message_id
        await continues(harness, microphone)
        assert harness.fake_inbox.said[-1] == ("ann", f"{BEGINNING} And my friends in all countries. {REST}")


async def test_a_turn_about_something_typed_is_left_alone_until_it_answers() -> None:
    async with open_live_speech(BEGINNING) as harness:
        microphone = await harness.open_stream()
        harness.running[THREAD] = "m_typed"
        await harness.speak(microphone, 1.0, 2.0)
        assert harness.fake_inbox.stops == []
        assert harness.fake_inbox.said == [("ann", BEGINNING)]


async def test_a_message_that_the_store_takes_late_is_joined_only_once() -> None:
    async with open_live_speech(BEGINNING, REST) as harness:
        microphone = await harness.open_stream()
        await said(harness, microphone)
        await harness.speak(microphone, 0.3)
        harness.running.clear()
        harness.fake_inbox.fails = 2
        await harness.speak(microphone, 0.7, 8.0)
        assert harness.fake_inbox.said == [("ann", BEGINNING), ("ann", f"{BEGINNING} {REST}")]
