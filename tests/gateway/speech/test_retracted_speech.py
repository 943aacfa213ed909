"""Going on after a pause that was taken for the end: one question, asked once, of all the words."""

from __future__ import annotations

from gateway.speech.live_stream import LiveAudioStream
from tests.gateway.live_speech_harness import ANN, HERE, Room, open_room
from voice.transcription.scripted_transcriber import ScriptedAnswer

BEGINNING = "And so my fellow Americans."
REST = "Ask not what your country can do for you."
THREAD = HERE.encode()


async def said(room: Room, microphone: LiveAudioStream) -> None:
    """The beginning is a message, and its turn is at work."""
    await room.hear(microphone, 1.0, 1.5)
    [message] = room.letterbox.messages
    room.running[THREAD] = message.message_id


async def goes_on(room: Room, microphone: LiveAudioStream, spoken_s: float = 1.0) -> None:
    """The voice comes back, and the turn is stopped for it."""
    await room.hear(microphone, 0.3)
    room.running.pop(THREAD, None)
    room.answering.clear()
    await room.hear(microphone, spoken_s - 0.3, 2.0)


async def test_words_that_follow_a_pause_are_asked_together_with_those_before_it() -> None:
    async with open_room(BEGINNING, REST) as room:
        microphone = await room.sit()
        await said(room, microphone)
        await goes_on(room, microphone)
        [stop] = room.letterbox.stops
        assert (stop.name, stop.quiet, stop.author) == ("stop", True, ANN)
        assert room.letterbox.said == [("ann", BEGINNING), ("ann", f"{BEGINNING} {REST}")]


async def test_who_speaks_while_it_thinks_long_is_answered_once_and_to_everything() -> None:
    async with open_room(BEGINNING, REST) as room:
        microphone = await room.sit()
        await said(room, microphone)
        await room.hear(microphone, 0.0, 8.0)
        await goes_on(room, microphone)
        assert len(room.letterbox.stops) == 1
        assert room.letterbox.said[-1] == ("ann", f"{BEGINNING} {REST}")


async def test_an_answer_that_began_at_once_is_taken_back_for_the_rest_of_the_sentence() -> None:
    async with open_room(BEGINNING, REST) as room:
        microphone = await room.sit()
        await said(room, microphone)
        room.answering.add(THREAD)
        await goes_on(room, microphone)
        assert len(room.letterbox.stops) == 1
        assert room.letterbox.said[-1] == ("ann", f"{BEGINNING} {REST}")


async def test_what_is_said_into_an_answer_that_was_heard_for_a_while_is_a_message_of_its_own() -> None:
    async with open_room(BEGINNING, REST) as room:
        microphone = await room.sit()
        await said(room, microphone)
        room.answering.add(THREAD)
        await room.hear(microphone, 0.0, 5.0)
        await goes_on(room, microphone)
        assert len(room.letterbox.stops) == 1
        assert room.letterbox.said == [("ann", BEGINNING), ("ann", REST)]


async def test_a_cough_while_it_thinks_has_the_question_asked_again() -> None:
    async with open_room(BEGINNING) as room:
        microphone = await room.sit()
        await said(room, microphone)
        await room.hear(microphone, 0.2)
        room.running.clear()
        await room.hear(microphone, 0.0, 2.0)
        assert len(room.letterbox.stops) == 1
        assert room.letterbox.said == [("ann", BEGINNING)] * 2
        first, second = room.letterbox.messages
        assert first.message_id != second.message_id
        assert first.speech == second.speech


async def test_a_question_that_is_taken_back_when_the_microphone_is_closed_is_asked_again() -> None:
    async with open_room(BEGINNING) as room:
        microphone = await room.sit()
        await said(room, microphone)
        await room.hear(microphone, 0.16)
        room.running.clear()
        await room.until_done(microphone.close())
        await room.clock.advance(1.0)
        assert room.letterbox.said == [("ann", BEGINNING)] * 2


async def test_three_parts_of_one_sentence_are_one_question() -> None:
    parts: tuple[ScriptedAnswer, ...] = (BEGINNING, "And my friends in all countries.", REST)
    async with open_room(*parts) as room:
        microphone = await room.sit()
        await said(room, microphone)
        await goes_on(room, microphone)
        room.running[THREAD] = room.letterbox.messages[-1].message_id
        await goes_on(room, microphone)
        assert room.letterbox.said[-1] == ("ann", f"{BEGINNING} And my friends in all countries. {REST}")


async def test_a_turn_about_something_typed_is_left_alone_until_it_answers() -> None:
    async with open_room(BEGINNING) as room:
        microphone = await room.sit()
        room.running[THREAD] = "m_typed"
        await room.hear(microphone, 1.0, 2.0)
        assert room.letterbox.stops == []
        assert room.letterbox.said == [("ann", BEGINNING)]


async def test_a_message_that_the_store_takes_late_is_joined_only_once() -> None:
    async with open_room(BEGINNING, REST) as room:
        microphone = await room.sit()
        await said(room, microphone)
        await room.hear(microphone, 0.3)
        room.running.clear()
        room.letterbox.fails = 2
        await room.hear(microphone, 0.7, 8.0)
        assert room.letterbox.said == [("ann", BEGINNING), ("ann", f"{BEGINNING} {REST}")]
