"""The real Whisper, one recording for each behaviour; `make eval NAME=transcription` hears all of them."""

from __future__ import annotations

import pytest

from tests.voice.clips import CLIPS, NOISE, NOTE_TRANSCRIPT, NOTES, Clip, samples_of, wav
from tests.voice.sounds import quiet
from voice.errors import AudioRefused, NothingHeard
from voice.selftest import BUNDLED_TRANSCRIPT, bundled_clip
from voice.settings import TranscriptionSettings
from voice.transcriber import Recording
from voice.transcription.voice_note import VoiceIntake
from voice.transcription.whisper_transcriber import WhisperTranscriber
from voice.wer import word_error_rate

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def intake(transcriber: WhisperTranscriber, settings: TranscriptionSettings) -> VoiceIntake:
    return VoiceIntake(transcriber, settings)


async def test_real_speech_is_understood_without_naming_its_language(intake: VoiceIntake) -> None:
    clip = CLIPS["lv_0890"]
    utterance = await intake.transcribe(Recording(data=clip.data))
    assert word_error_rate(clip.transcript, utterance.text) < 0.2, utterance.text
    assert utterance.language == "en"
    assert 0.4 < utterance.confidence <= 1.0


async def test_a_voice_note_in_opus_is_understood(intake: VoiceIntake) -> None:
    utterance = await intake.transcribe(Recording(data=NOTES["oga"], language="en"))
    assert word_error_rate(NOTE_TRANSCRIPT, utterance.text) < 0.2, utterance.text


@pytest.mark.parametrize("clip", NOISE, ids=lambda clip: clip.name)
async def test_silence_hum_and_hiss_say_nothing(intake: VoiceIntake, clip: Clip) -> None:
    with pytest.raises(NothingHeard):
        await intake.transcribe(Recording(data=clip.data))


async def test_a_recording_shorter_than_a_word_says_nothing(intake: VoiceIntake) -> None:
    with pytest.raises(NothingHeard):
        await intake.transcribe(Recording(data=wav(samples_of(CLIPS["jfk"])[40_000:48_000])))


async def test_a_hostile_file_is_refused_through_the_worker_with_its_own_words(intake: VoiceIntake) -> None:
    with pytest.raises(AudioRefused, match="cannot read that kind of file") as caught:
        await intake.transcribe(Recording(data=b"v=0\r\nm=audio 5004 RTP/AVP 0\r\n"))
    assert caught.value.code == "unknown_format"


async def test_speech_around_a_pause_is_heard_whole_and_keeps_its_place_in_time(
    transcriber: WhisperTranscriber,
) -> None:
    clip, pause_s = CLIPS["lv_0880"], 5.0
    pcm, pause = samples_of(clip), bytes(2 * round(16_000 * pause_s))
    data = wav(bytes(2 * 16_000 * 2) + pcm + pause + pcm)
    transcript = await transcriber.transcribe(Recording(data=data, language="en"))
    assert 1.0 < transcript.chunks[0].start_s < 3.0
    assert 6.0 + pause_s < transcript.chunks[-1].end_s <= transcript.audio_seconds
    text = " ".join(chunk.text for chunk in transcript.chunks)
    assert word_error_rate(f"{clip.transcript} {clip.transcript}", text) < 0.2, text


async def test_an_open_microphone_that_heard_a_sentence_twice_says_it_twice(
    transcriber: WhisperTranscriber,
) -> None:
    clip = CLIPS["lv_0880"]
    data = samples_of(clip) + quiet(0.6) + samples_of(clip)
    transcript = await transcriber.transcribe(
        Recording(data=data, form="pcm", urgency="final", language="en")
    )
    text = " ".join(chunk.text for chunk in transcript.chunks)
    assert word_error_rate(f"{clip.transcript} {clip.transcript}", text) < 0.2, text


async def test_the_bundled_clip_is_what_the_doctor_says_it_is(intake: VoiceIntake) -> None:
    utterance = await intake.transcribe(Recording(data=bundled_clip()))
    assert word_error_rate(BUNDLED_TRANSCRIPT, utterance.text) <= 0.125  # a syllable of one word
