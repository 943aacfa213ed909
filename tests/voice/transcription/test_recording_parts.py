"""The pieces of a recording, heard by processes without a model and put together."""

from __future__ import annotations

from pathlib import Path

from tests.voice.transcription.test_pool import PoolHarness
from voice.audio.segments import Decoded, SpeechSegment
from voice.transcript import Transcript
from voice.transcription.jobs import TranscriptionJob
from voice.transcription.recording_parts import Parts


async def heard(harness: PoolHarness, texts: list[str], *, language: str | None = None) -> Transcript:
    """A recording in which each text lasts two seconds, with a pause of two seconds behind it."""
    hearing = TranscriptionJob(speaker="ann", urgency="note", beam=5, language=language)
    parts = Parts(harness.pool, hearing, None)
    harness.pool.admit(hearing)
    try:
        for index, text in enumerate(texts):
            pcm = text.encode().ljust(64_000, b"\0")
            parts.take(SpeechSegment(index=index, pcm=pcm, spans=((4.0 * index, 4.0 * index + 2.0),)))
        parts.complete()
        decoded = Decoded(seconds=4.0 * len(texts), truncated=False, container="ogg", segments=len(texts))
        return parts.joined(decoded, await parts.results())
    finally:
        harness.pool.leave(hearing)
        await harness.pool.close()


async def test_pieces_are_joined_in_their_order_with_their_times(tmp_path: Path) -> None:
    transcript = await heard(PoolHarness(tmp_path / "log"), ["one", "two", "three"])
    assert [(chunk.text, chunk.start_s) for chunk in transcript.chunks] == [
        ("one", 0.0),
        ("two", 4.0),
        ("three", 8.0),
    ]
    assert (transcript.language, transcript.audio_seconds) == ("en", 12.0)


async def test_a_word_that_seems_to_be_in_another_language_is_heard_in_that_of_the_rest(
    tmp_path: Path,
) -> None:
    harness = PoolHarness(tmp_path / "log")
    transcript = await heard(harness, ["hello there", "de? so", "good bye"])
    assert transcript.language == "en"
    assert [chunk.text for chunk in transcript.chunks] == ["hello there", "so", "good bye"]
    assert sum("de? so" in job for job in harness.jobs) == 2


async def test_a_sentence_that_is_surely_in_another_language_stays_what_it_is(tmp_path: Path) -> None:
    harness = PoolHarness(tmp_path / "log")
    transcript = await heard(harness, ["hello there", "de guten Tag", "good bye"])
    assert [chunk.text for chunk in transcript.chunks] == ["hello there", "guten Tag", "good bye"]
    assert sum("de guten Tag" in job for job in harness.jobs) == 1


async def test_a_language_that_is_certain_is_never_doubted(tmp_path: Path) -> None:
    harness = PoolHarness(tmp_path / "log")
    transcript = await heard(harness, ["hello there", "de? so"], language="en")
    assert transcript.language == "en"
    assert sum("de? so" in job for job in harness.jobs) == 1
