"""The recogniser's engine on real speech: one encoder pass, batches, short windows, languages, words before.

One recording for each; how well it hears beside faster-whisper is measured by `make eval NAME=transcription`.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.voice.clips import CLIPS, samples_of
from tests.voice.spoken_before import SPOKEN_BEFORE
from tests.voice.variants import variants
from voice.errors import TranscriberUnavailable
from voice.settings import TranscriptionSettings
from voice.transcription.device import chosen_compute_type, chosen_device
from voice.transcription.engine_io import EngineJob, EngineResult
from voice.transcription.mel_window import FULL, FULL_FRAMES, Mel, Window
from voice.transcription.whisper_engine import (
    LoadedModel,
    WhisperEngine,
    load_model,
    settled_language,
    shortest_window,
)
from voice.wer import word_error_rate

pytestmark = pytest.mark.models

CLEAR = CLIPS["lj001-0004"]


@pytest.fixture(scope="module")
def model(settings: TranscriptionSettings) -> LoadedModel:
    return load_model(settings.model_dir)


@pytest.fixture(scope="module")
def engine(model: LoadedModel) -> WhisperEngine:
    return WhisperEngine(model)


@pytest.fixture(scope="module")
def plain(model: LoadedModel) -> WhisperEngine:
    return WhisperEngine(model, engine="plain")


def job(
    pcm: bytes,
    *,
    language: str | None = None,
    likely_language: str | None = None,
    prompt: str = "",
    beam_size: int = 5,
) -> EngineJob:
    return EngineJob(
        pcm=pcm,
        spans=((1.0, 1.0 + len(pcm) / 32_000),),
        language=language,
        likely_language=likely_language,
        prompt=prompt,
        beam_size=beam_size,
    )


def words_of(heard: EngineResult) -> str:
    return " ".join(chunk.text for chunk in heard.chunks)


def test_one_encoder_pass_gives_the_language_and_the_words(engine: WhisperEngine) -> None:
    before = engine.encoder_passes
    (heard,) = engine.transcribe([job(samples_of(CLEAR))])
    assert engine.encoder_passes - before == 1
    assert_clear(heard)


def test_faster_whisper_takes_the_words_before_and_two_passes_of_its_window(plain: WhisperEngine) -> None:
    before = plain.encoder_passes
    (heard,) = plain.transcribe([job(samples_of(CLEAR), prompt=SPOKEN_BEFORE, beam_size=1)])
    assert plain.encoder_passes - before == 2
    assert_clear(heard, errors=0.2, confidence=0.5)


def assert_clear(heard: EngineResult, *, errors: float = 0.1, confidence: float = 0.6) -> None:
    """These are the words of the clear clip, their place and their language, which was not given."""
    assert heard.language == "en"
    assert heard.language_probability > 0.9
    assert not heard.low
    assert word_error_rate(CLEAR.transcript, words_of(heard)) < errors
    assert 1.0 <= heard.chunks[0].start_s < heard.chunks[-1].end_s <= 1.0 + 5.14
    assert all(confidence < chunk.confidence <= 1.0 for chunk in heard.chunks)


def test_pieces_heard_together_say_what_they_say_alone_and_keep_their_order(engine: WhisperEngine) -> None:
    names = ("lv_0880", "lj001-0002")
    jobs = [job(samples_of(CLIPS[name]), language="en", beam_size=1) for name in names]
    before = engine.encoder_passes
    together = engine.transcribe(jobs)
    assert engine.encoder_passes - before == len(jobs)
    for name, heard in zip(names, together, strict=True):
        assert word_error_rate(CLIPS[name].transcript, words_of(heard)) < 0.2, words_of(heard)


def test_on_the_processor_the_first_run_is_not_slow_and_a_warm_up_is_one_pass(engine: WhisperEngine) -> None:
    before = engine.encoder_passes
    engine.warm_up()
    assert engine.encoder_passes - before == 1
    assert not engine.first_run_is_slow


def test_hiss_that_got_past_the_detector_gives_no_words(engine: WhisperEngine) -> None:
    (heard,) = engine.transcribe([job(samples_of(CLIPS["hiss"]), beam_size=1)])
    assert heard == EngineResult(chunks=(), language="", language_probability=0.0, low=False)


def test_the_dots_that_faster_whisper_writes_over_silence_are_no_words(plain: WhisperEngine) -> None:
    (heard,) = plain.transcribe([job(bytes(64_000), language="cy", beam_size=1)])
    assert heard.chunks == ()


def test_what_looks_wrong_in_a_short_window_is_heard_again_in_the_full_one(model: LoadedModel) -> None:
    cramped = WhisperEngine(model, window=Window(floor=100, margin=0))
    clip = CLIPS["lj001-0002"]

    def again_and_right(pcm: bytes) -> bool:
        before = cramped.encoder_passes
        (heard,) = cramped.transcribe([job(pcm, language="en")])
        passes = cramped.encoder_passes - before
        assert passes <= 2
        return passes == 2 and word_error_rate(clip.transcript, words_of(heard)) < 0.1

    # Processors round differently, and one may hear the first of them right at once.
    assert any(map(again_and_right, variants(samples_of(clip), 3)))


def test_words_that_stay_doubtful_are_kept_with_a_low_confidence(engine: WhisperEngine) -> None:
    syllable = samples_of(CLIPS["lj001-0002"])[32_000:48_000]
    before = engine.encoder_passes
    (heard,) = engine.transcribe([job(syllable, language="en")])
    assert engine.encoder_passes - before == 2
    assert heard.low
    assert words_of(heard)
    assert heard.chunks[0].confidence < 0.37


def test_a_certain_language_is_not_detected(engine: WhisperEngine) -> None:
    (heard,) = engine.transcribe([job(samples_of(CLEAR), language="de", likely_language="en", beam_size=1)])
    assert (heard.language, heard.language_probability) == ("de", 1.0)


def test_a_language_no_one_knows_is_detected(engine: WhisperEngine) -> None:
    (heard,) = engine.transcribe([job(samples_of(CLEAR), language="tlh", likely_language="tlh", beam_size=1)])
    assert heard.language == "en"


@pytest.mark.parametrize(
    ("probability", "likely", "settled"),
    [
        (0.6, "de", ("en", 0.6)),
        (0.4, "de", ("de", 0.1)),
        (0.4, None, ("en", 0.4)),
        (0.4, "tlh", ("en", 0.4)),
    ],
)
def test_the_speakers_last_language_counts_only_where_detection_is_unsure(
    probability: float, likely: str | None, settled: tuple[str, float]
) -> None:
    ranking = [("en", probability), ("nl", 0.2), ("de", 0.1)]
    assert settled_language(ranking, likely) == settled


def test_the_words_before_are_taken_and_may_be_long(engine: WhisperEngine) -> None:
    (heard,) = engine.transcribe([job(samples_of(CLEAR), language="en", prompt=SPOKEN_BEFORE, beam_size=1)])
    assert word_error_rate(CLEAR.transcript, words_of(heard)) < 0.2, heard


def test_a_piece_that_does_not_fit_the_window_is_no_job() -> None:
    for pcm in (b"", b"\0", bytes(32_000 * 30 + 2)):
        with pytest.raises(ValueError, match="at most 30 s"):
            job(pcm)


def test_short_windows_are_used_where_the_runtime_takes_them() -> None:
    def works(mel: Mel) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.zeros((1, mel.shape[2] // 2, 512), dtype=np.float32)

    def pads(mel: Mel) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.zeros((len(mel), 1500, 512), dtype=np.float32)

    def refuses(mel: Mel) -> object:
        if mel.shape[2] == FULL_FRAMES:
            return works(mel)
        raise ValueError(f"expected 3000 frames, got {mel.shape[2]}")

    def fails(mel: Mel) -> object:
        raise RuntimeError("Library libcublas.so.12 is not found or cannot be loaded")

    assert shortest_window(works, 80) == Window()
    assert shortest_window(pads, 80) == FULL
    assert shortest_window(refuses, 80) == FULL
    with pytest.raises(TranscriberUnavailable) as caught:
        shortest_window(fails, 80)
    assert re.search(r"libcublas.* Set the recogniser's device to `cpu`", caught.value.detail)


def test_a_gpu_or_an_arithmetic_that_is_not_there_is_named() -> None:
    assert chosen_device("cpu") == "cpu"
    assert chosen_compute_type("auto", "cpu") == "int8"
    with pytest.raises(TranscriberUnavailable) as caught:
        chosen_compute_type("int3", "cpu")
    assert re.search(r"`int3` does not exist on this cpu.*`auto`.*int8", caught.value.detail)
    if chosen_device("auto") == "cpu":
        with pytest.raises(TranscriberUnavailable) as caught:
            chosen_device("cuda")
        assert "none is found. Set its device to `cpu`" in caught.value.detail
