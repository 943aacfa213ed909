"""What every speaker promises: the shipped fake and the real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.voice.ogg_player import play
from tests.voice.voices import voices_dir
from voice.errors import SpeakerUnavailable
from voice.synthesis.piper_client import PiperSpeaker
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker
from voice.synthesis.synthesizer import SpeechSynthesizer

SENTENCE = "The parcel arrives tomorrow between nine and eleven."


KINDS = ["scripted", pytest.param("piper", marks=pytest.mark.models)]

in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""Of the tests that share `speaker`."""


def speaker_of(kind: str) -> SpeechSynthesizer:
    return ScriptedSpeaker() if kind == "scripted" else PiperSpeaker(voices_dir(), deadline_floor_s=120.0)


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def speaker(request: pytest.FixtureRequest) -> AsyncIterator[SpeechSynthesizer]:
    """One for all that leave it as it is."""
    made = speaker_of(request.param)
    yield made
    await made.close()


@in_one_loop
async def test_a_sentence_becomes_a_voice_message_as_phones_send_them(speaker: SpeechSynthesizer) -> None:
    spoken = await speaker.speak(SENTENCE)
    assert speaker.status() == "ready"
    played = play(spoken.data)
    assert (spoken.mime, played.codec, played.rate, played.layout) == ("audio/ogg", "opus", 48_000, "mono")
    assert 1.5 < spoken.seconds < 8
    assert played.seconds == pytest.approx(spoken.seconds, abs=0.05)
    assert 0 < len(spoken.waveform) <= 256
    assert max(spoken.waveform) > 100


@in_one_loop
async def test_two_who_ask_at_once_are_both_answered(speaker: SpeechSynthesizer) -> None:
    short, long = await asyncio.gather(speaker.speak("Yes."), speaker.speak(SENTENCE))
    assert short.seconds < long.seconds


@in_one_loop
async def test_languages_without_a_voice_are_known_and_refused(speaker: SpeechSynthesizer) -> None:
    assert speaker.speaks("en")
    assert not speaker.speaks("de")
    with pytest.raises(SpeakerUnavailable, match="no voice for 'de'"):
        await speaker.speak("Guten Tag.", language="de")


@in_one_loop
async def test_nothing_to_say_is_an_error_and_not_an_empty_file(speaker: SpeechSynthesizer) -> None:
    with pytest.raises(SpeakerUnavailable, match="nothing to say"):
        await speaker.speak(" \n ")


@pytest.mark.parametrize("kind", KINDS)
async def test_it_is_started_and_after_close_nothing_is_said(kind: str) -> None:
    speaker = speaker_of(kind)
    assert speaker.status() == "not started"
    await speaker.warm_up()
    assert speaker.status() == "ready"
    await speaker.close()
    assert speaker.status() == "closed"
    with pytest.raises(SpeakerUnavailable, match="closed"):
        await speaker.speak(SENTENCE)
    with pytest.raises(SpeakerUnavailable, match="closed"):
        await speaker.warm_up()
