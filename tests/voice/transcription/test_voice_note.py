"""From a voice note to an utterance, with the scripted transcriber."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from voice.errors import AudioRefused, NothingHeard, TranscriberBusy, TranscriptionTimeout, VoiceError
from voice.settings import TranscriptionSettings
from voice.transcriber import Growing, Recording, Waiting
from voice.transcript import SpeechChunk, Transcript
from voice.transcription.scripted_transcriber import ScriptedProgress, ScriptedTranscriber
from voice.transcription.voice_note import VoiceIntake

SETTINGS = TranscriptionSettings(model_dir=Path("/nowhere"))


def chunk(
    text: str, *, start: float = 0.0, end: float = 2.0, confidence: float = 0.9, no_speech: float = 0.0
) -> SpeechChunk:
    return SpeechChunk(
        text=text, start_s=start, end_s=end, confidence=confidence, no_speech_probability=no_speech
    )


def said(*chunks: SpeechChunk, truncated: bool = False) -> Transcript:
    return Transcript(
        chunks=chunks, language="en", language_probability=0.99, audio_seconds=7.5, truncated=truncated
    )


def intake(*answers: Transcript | str | VoiceError) -> VoiceIntake:
    return VoiceIntake(ScriptedTranscriber(answers), SETTINGS)


async def test_chunks_become_one_utterance_in_order() -> None:
    first = chunk("Turn on", end=1.0, confidence=0.6)
    second = chunk("the light.", start=1.0, end=4.0, confidence=1.0)
    utterance = await intake(said(first, second, truncated=True)).transcribe(Recording(data=b"note"))
    assert utterance.text == "Turn on the light."
    assert utterance.confidence == pytest.approx(0.9)
    assert utterance.audio_seconds == 7.5
    assert utterance.language == "en"
    assert utterance.truncated


async def test_chunks_of_a_language_without_spaces_are_joined_without() -> None:
    utterance = await intake(said(chunk("明日の朝、"), chunk("起こしてください。"))).transcribe(
        Recording(data=b"note")
    )
    assert utterance.text == "明日の朝、起こしてください。"


@pytest.mark.parametrize(
    "text",
    ["", "   ", "[BLANK_AUDIO]", "(silence)", "[ Silence ]", "*music*", "♪♪", "...", "[MUSIC PLAYING]."],
)
async def test_what_is_no_speech_is_reported_in_words_and_never_becomes_a_message(text: str) -> None:
    with pytest.raises(NothingHeard, match="could not hear any words") as caught:
        await intake(said(chunk(text))).transcribe(Recording(data=b"note"))
    assert caught.value.code == "nothing_heard"


async def test_a_transcript_without_chunks_is_nothing_heard() -> None:
    with pytest.raises(NothingHeard):
        await intake(said()).transcribe(Recording(data=b"note"))


async def test_labels_are_cut_out_of_real_speech_and_ordinary_brackets_stay() -> None:
    utterance = await intake(said(chunk("Call [BLANK_AUDIO] the (big) shop."))).transcribe(
        Recording(data=b"note")
    )
    assert utterance.text == "Call the (big) shop."


@pytest.mark.parametrize(
    "phrase", ["Thanks for watching!", "Thank you.", "Untertitel der Amara.org-Community"]
)
@pytest.mark.parametrize(("confidence", "no_speech"), [(0.3, 0.0), (0.9, 0.5)])
async def test_a_stock_phrase_over_weak_sound_is_dropped(
    phrase: str, confidence: float, no_speech: float
) -> None:
    with pytest.raises(NothingHeard):
        await intake(said(chunk(phrase, confidence=confidence, no_speech=no_speech))).transcribe(
            Recording(data=b"note")
        )


async def test_a_clear_thank_you_is_a_message() -> None:
    assert (
        await intake(said(chunk("Thank you.", end=0.8))).transcribe(Recording(data=b"note"))
    ).text == "Thank you."


async def test_weak_sound_alone_drops_no_ordinary_sentence() -> None:
    utterance = await intake(said(chunk("Where is my parcel?", confidence=0.2))).transcribe(
        Recording(data=b"note")
    )
    assert utterance.text == "Where is my parcel?"
    assert utterance.confidence == pytest.approx(0.2)


async def test_too_many_bytes_never_reach_the_transcriber() -> None:
    transcriber = ScriptedTranscriber(["never said"])
    small = TranscriptionSettings(model_dir=Path("/nowhere"), max_bytes=3)
    with pytest.raises(AudioRefused) as caught:
        await VoiceIntake(transcriber, small).transcribe(Recording(data=b"note"))
    assert caught.value.code == "too_large"
    assert transcriber.calls == []


@pytest.mark.parametrize(
    "failure", [TranscriberBusy(), TranscriptionTimeout(), AudioRefused("damaged", "Bad.")]
)
async def test_the_transcribers_failure_passes_through_unchanged(failure: VoiceError) -> None:
    with pytest.raises(type(failure)) as caught:
        await intake(failure).transcribe(Recording(data=b"note"))
    assert caught.value is failure


async def test_the_language_hint_of_the_call_outranks_the_setting() -> None:
    transcriber = ScriptedTranscriber(["eins", "zwei"])
    german = VoiceIntake(transcriber, TranscriptionSettings(model_dir=Path("/nowhere"), language="de"))
    await german.transcribe(Recording(data=b"one"))
    await german.transcribe(Recording(data=b"two", language="fr"))
    assert [call.language for call in transcriber.calls] == ["de", "fr"]


async def test_the_script_answers_by_hash_before_order() -> None:
    by_hash = {hashlib.sha256(b"known").hexdigest(): "by hash"}
    intake = VoiceIntake(ScriptedTranscriber(["in order"], by_hash=by_hash), SETTINGS)
    assert (await intake.transcribe(Recording(data=b"known"))).text == "by hash"
    assert (await intake.transcribe(Recording(data=b"other"))).text == "in order"
    with pytest.raises(VoiceError, match="no answer left"):
        await intake.transcribe(Recording(data=b"third"))


@pytest.mark.parametrize(
    ("field", "value"), [("max_bytes", 0), ("max_seconds", -1.0), ("queue_limit", -1), ("min_seconds", 400.0)]
)
def test_a_setting_that_makes_no_sense_is_named(field: str, value: float) -> None:
    values: dict[str, float] = {field: value}
    with pytest.raises(ValueError, match=field):
        TranscriptionSettings(model_dir=Path("/nowhere"), **values)  # type: ignore[arg-type] # one field of several types


async def test_growing_words_come_without_artefacts_and_only_when_there_are_more_of_them() -> None:
    waiting = Waiting(ahead=2, eta_s=3.0)
    answer = ScriptedProgress(
        waiting=(waiting,),
        partials=("[BLANK_AUDIO]", "Thank you.", "So", "So [music]", "So far."),
        then="So far. So good.",
    )
    reported: list[Waiting | Growing] = []
    intake = VoiceIntake(ScriptedTranscriber([answer]), SETTINGS)
    assert (
        await intake.transcribe(Recording(data=b"note"), on_progress=reported.append)
    ).text == "So far. So good."
    assert reported[0] == waiting
    assert [progress.text for progress in reported if isinstance(progress, Growing)] == ["So", "So far."]


@pytest.mark.parametrize(
    "phrase",
    [
        "ご視聴ありがとうございました。", "İzlediğiniz için teşekkürler.", "시청해주셔서 감사합니다.",
        "Продолжение следует...", "Legendas pela comunidade Amara.org", "Grazie per la visione!",
        "Bedankt voor het kijken.", "Dziękuję za obejrzenie.", "Sous-titrage Société Radio-Canada",
    ],
)  # fmt: skip
async def test_stock_phrases_are_known_in_many_languages_and_need_weak_sound_to_be_dropped(
    phrase: str,
) -> None:
    with pytest.raises(NothingHeard):
        await intake(said(chunk(phrase, confidence=0.3))).transcribe(Recording(data=b"note"))
    assert (await intake(said(chunk(phrase))).transcribe(Recording(data=b"note"))).text == phrase


async def test_a_recording_that_was_cut_before_anybody_spoke_says_how_far_it_was_heard() -> None:
    with pytest.raises(NothingHeard, match=r"in the first 8 seconds .* and I listen no further"):
        await intake(said(truncated=True)).transcribe(Recording(data=b"note"))
