"""One open microphone: when its words are a message, and what is reported meanwhile."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.voice.live_harness import VOICE, Booth, open_booth
from voice.endpointing.flush_policy import FlushSettings
from voice.errors import TranscriberBusy, TranscriberUnavailable
from voice.streaming.segmenter import FRAME_S
from voice.transcript import SpeechChunk, Transcript

SENTENCE = "Turn on the lights in the kitchen, please."
THOUGHT = "can you turn on the lights in the kitchen"
WORDS = "the lights that are in the kitchen and the"


def silence_before_the_message(booth: Booth) -> float:
    """Seconds from the last voice to the only message."""
    [(at, _)] = booth.flushed
    return at - booth.voice_end


@pytest.mark.parametrize(
    ("text", "decode_s", "expected_s"),
    [(SENTENCE, 0.2, 0.8), (SENTENCE, 1.2, 1.55), (THOUGHT, 0.2, 1.5), (WORDS, 0.2, 3.0)],
)
async def test_words_are_a_message_as_soon_as_they_sound_finished_and_are_understood(
    text: str, decode_s: float, expected_s: float
) -> None:
    async with open_booth(text, takes_s=decode_s) as booth:
        await booth.speak(2.0)
        await booth.pause(4.0)
        assert booth.texts == [text]
        assert silence_before_the_message(booth) == pytest.approx(expected_s, abs=FRAME_S)


async def test_a_segment_is_heard_with_half_a_second_before_it_as_the_end_of_a_live_utterance() -> None:
    async with open_booth(SENTENCE, likely_language="de") as booth:
        await booth.pause(2.0)
        await booth.speak(1.024)
        await booth.pause(1.0)
        [recording] = booth.scribe.recordings("final")
        assert len(recording.data) == (16 + 32 + 11) * 1024
        assert (recording.form, recording.speaker, recording.likely_language) == ("pcm", "ann", "de")
        assert booth.notes.events == ["started", "ended"]


@pytest.mark.parametrize("decode_s", [0.05, 0.5])
async def test_what_was_heard_in_a_pause_is_void_when_the_speech_continues(decode_s: float) -> None:
    async with open_booth("Turn on the light.", SENTENCE, takes_s=decode_s) as booth:
        await booth.speak(1.0)
        await booth.pause(0.5)
        await booth.speak(1.0)
        await booth.pause(2.0)
        first, second = booth.scribe.recordings("final")
        assert booth.texts == [SENTENCE]
        assert second.data.startswith(first.data)
        assert booth.scribe.cancelled.count("final") == (decode_s > 0.15)
        assert booth.notes.events == ["started", "ended"]


async def test_sentences_with_short_pauses_between_are_one_message() -> None:
    async with open_booth("and then we went", "to the old harbour.", takes_s=0.1) as booth:
        await booth.speak(1.0)
        await booth.pause(1.0)
        await booth.speak(1.0)
        await booth.pause(1.0)
        assert booth.texts == ["and then we went to the old harbour."]
        assert booth.notes.events == ["started", "ended", "started", "ended"]


async def test_words_stay_in_their_order_when_the_first_take_longer_to_understand() -> None:
    async with open_booth("one and", "two are three, I think.", takes_s=3.0) as booth:
        await booth.speak(1.0)
        await booth.pause(0.9)
        booth.scribe.takes_s = 0.1
        await booth.speak(0.5)
        await booth.pause(4.0)
        assert booth.texts == ["one and two are three, I think."]


async def test_long_speech_is_cut_in_a_gap_and_its_tail_is_heard_with_the_words_before() -> None:
    long = FlushSettings(max_s=60.0)
    async with open_booth("x" * 300 + " first", "second.", flush=long) as booth:
        await booth.speak(12.0)
        await booth.murmur(0.16)
        await booth.speak(4.0)
        await booth.pause(2.0)
        first, second = booth.scribe.recordings("final")
        assert len(first.data) == (375 + 2) * 1024
        assert first.prompt == ""
        assert second.prompt == ("x" * 300 + " first")[-200:]
        assert len(second.data) == (3 + 125 + 11) * 1024
        assert booth.texts == ["x" * 300 + " first second."]
        assert booth.notes.events == ["started", "ended"]


async def test_partials_come_while_somebody_speaks_and_their_agreed_words_are_marked() -> None:
    partials = ["Turn on", "Turn on the light", "Turn on the lights in."]
    async with open_booth(SENTENCE, partials=partials) as booth:
        await booth.speak(4.5)
        assert booth.notes.partials == [
            ("Turn on", 0),
            ("Turn on the light", len("Turn on")),
            ("Turn on the lights in.", len("Turn on the")),
        ]
        times = [at for at, recording in booth.scribe.begun if recording.urgency == "partial"]
        assert all(later - earlier >= 1.2 for earlier, later in pairwise(times))


async def test_a_partial_shows_the_words_before_it_as_settled_and_the_final_takes_its_place() -> None:
    async with open_booth("and then we went", "to the harbour.", partials=["to the"]) as booth:
        await booth.speak(1.0)
        await booth.pause(1.0)
        await booth.speak(1.3)
        await booth.pause(0.5)
        before = "and then we went"
        assert booth.notes.partials == [(before, len(before)), (f"{before} to the", len(before))]


async def test_a_partial_makes_way_for_a_final() -> None:
    async with open_booth(SENTENCE, partials=["Turn on"], takes_s=0.6) as booth:
        await booth.speak(1.3)
        await booth.pause(0.6)
        assert booth.scribe.cancelled == ["partial"]
        await booth.pause(1.0)
        assert booth.texts == [SENTENCE]
        assert booth.notes.partials == [(SENTENCE, len(SENTENCE))]


async def test_who_pushes_to_talk_ends_the_message_and_no_pause_does() -> None:
    async with open_booth("One, two, three, four, five.", "six", hands_free=False) as booth:
        await booth.speak(1.0)
        await booth.pause(5.0)
        assert booth.texts == []
        await booth.speak(1.0)
        await booth.until_done(booth.listener.finish())
        assert booth.texts == ["One, two, three, four, five. six"]
        assert booth.flushed[0][1].reason == "forced"


@pytest.mark.parametrize(("seconds", "reason"), [(0.2, "too_short"), (0.0, "nothing_heard")])
async def test_a_button_without_words_is_reported(seconds: float, reason: str) -> None:
    async with open_booth(hands_free=False) as booth:
        await booth.speak(seconds)
        await booth.listener.finish()
        assert booth.notes.events[-1] == f"dropped:{reason}"
        assert booth.notes.words[0]


async def test_a_closed_microphone_leaves_what_was_said_as_a_message() -> None:
    async with open_booth(WORDS) as booth:
        await booth.speak(1.0)
        await booth.until_done(booth.listener.close())
        await booth.speak(1.0)
        assert booth.texts == [WORDS]
        assert booth.detector.streams[0].closed


async def test_noise_is_reported_and_is_no_message() -> None:
    async with open_booth("[Music]") as booth:
        await booth.speak(1.0)
        await booth.pause(4.0)
        assert booth.texts == []
        assert booth.notes.events == ["started", "ended", "dropped:nothing_heard"]


async def test_a_cough_is_dropped_without_words_and_beside_words_not_reported_at_all() -> None:
    async with open_booth(WORDS) as booth:
        await booth.speak(0.2)
        await booth.pause(1.0)
        assert booth.notes.words == [""]
        await booth.speak(1.0)
        await booth.pause(1.0)
        await booth.speak(0.2)
        await booth.pause(4.0)
        assert booth.texts == [WORDS]
        assert booth.notes.words == [""]


async def test_a_busy_recogniser_is_asked_again_and_the_words_are_not_lost() -> None:
    async with open_booth(TranscriberBusy(), SENTENCE) as booth:
        await booth.speak(1.0)
        await booth.pause(2.0)
        assert booth.texts == [SENTENCE]
        assert not booth.notes.words


@pytest.mark.parametrize(
    ("error", "reason"),
    [(TranscriberBusy("Too much."), "busy"), (TranscriberUnavailable("No model."), "unavailable")],
)
async def test_a_recogniser_that_fails_twice_is_reported_in_its_words(
    error: TranscriberBusy | TranscriberUnavailable, reason: str
) -> None:
    async with open_booth(error, error, SENTENCE) as booth:
        await booth.speak(1.0)
        await booth.pause(2.0)
        assert booth.notes.events == ["started", "ended", f"dropped:{reason}"]
        assert booth.notes.words == [str(error)]
        await booth.speak(1.0)
        await booth.pause(2.0)
        assert booth.texts == [SENTENCE]


async def test_speech_continues_at_another_detector_when_one_breaks_down() -> None:
    async with open_booth("and then we", "went to the old harbour.") as booth:
        await booth.speak(1.0)
        booth.detector.streams[0].lose()
        await booth.clock.advance(0.1)
        await booth.speak(1.0)
        await booth.pause(2.0)
        first, second = booth.scribe.recordings("final")
        assert len(first.data) == 31 * 1024
        assert len(second.data) == (31 + 11) * 1024
        assert booth.texts == ["and then we went to the old harbour."]


async def test_what_is_said_while_another_detector_starts_is_not_lost() -> None:
    async with open_booth("and then we", "went to the old harbour.") as booth:
        await booth.speak(1.0)
        booth.detector.streams[0].lose()
        for _ in range(20):
            booth.listener.feed(VOICE)
        await booth.clock.advance(0.1)
        await booth.pause(2.0)
        first, second = booth.scribe.recordings("final")
        assert len(first.data) == 31 * 1024
        assert second.data == 20 * VOICE + bytes(11 * 1024)
        assert booth.texts == ["and then we went to the old harbour."]


async def test_what_no_detector_judged_before_it_broke_down_is_judged_by_the_next() -> None:
    async with open_booth("and then we", "went to the old harbour.") as booth:
        await booth.speak(1.0)
        booth.detector.streams[0].closed = True
        for _ in range(20):
            booth.listener.feed(VOICE)
        booth.detector.streams[0].lose()
        await booth.clock.advance(0.1)
        await booth.pause(2.0)
        assert booth.scribe.recordings("final")[1].data == 20 * VOICE + bytes(11 * 1024)


async def test_a_detector_that_cannot_be_replaced_makes_deaf_and_loses_no_words() -> None:
    async with open_booth(WORDS) as booth:
        await booth.speak(1.0)
        booth.detector.refusal = "It does not start."
        booth.detector.streams[0].lose()
        await booth.clock.advance(4.0)
        assert booth.listener.vad_failed
        assert booth.notes.words == ["It does not start."]
        assert booth.texts == [WORDS]


async def test_sound_that_stops_without_a_silence_ends_the_speech_when_asked() -> None:
    async with open_booth(SENTENCE) as booth:
        await booth.speak(1.0)
        await booth.clock.advance(5.0)
        assert booth.listener.seconds_since_audio == pytest.approx(5.0)
        assert booth.listener.silent_s == 0.0
        booth.listener.sound_stopped()
        await booth.clock.advance(1.0)
        assert booth.texts == [SENTENCE]


async def test_the_confidence_of_a_message_is_that_of_its_words_by_their_length() -> None:
    async with open_booth(_said("and then we went", 1.0, 3.0), _said("home, I am sure.", 0.5, 1.0)) as booth:
        await booth.speak(1.0)
        await booth.pause(1.0)
        await booth.speak(1.0)
        await booth.pause(1.0)
        [(_, flushed)] = booth.flushed
        assert flushed.chunks == 2
        assert flushed.confidence == pytest.approx(0.75)


async def test_words_after_the_longest_time_are_the_next_message() -> None:
    async with open_booth(*["and on and on"] * 20) as booth:
        for _ in range(8):
            await booth.speak(1.0)
            await booth.pause(1.4)
        await booth.pause(4.0)
        assert len(booth.texts) == 2
        assert " ".join(booth.texts).count("and on and on") == 8


def _said(text: str, confidence: float, seconds: float) -> Transcript:
    chunk = SpeechChunk(
        text=text, start_s=0.0, end_s=seconds, confidence=confidence, no_speech_probability=0.0
    )
    return Transcript(chunks=(chunk,), language="en", language_probability=1.0, audio_seconds=seconds)
