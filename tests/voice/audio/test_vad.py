"""Where speech lies: as a batch over everything finds it, while it still comes in, and cheap in quiet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from faster_whisper.vad import VadOptions, get_speech_timestamps
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.tables import each
from tests.voice.clips import CLIPS, NOISE, SPEECH, samples_of
from voice.audio.vad import FRAME, SileroModel, SpeechTracker, VoiceDetector

MODEL = SileroModel()
REFERENCE = VadOptions(
    threshold=0.5, min_speech_duration_ms=100, min_silence_duration_ms=1000, speech_pad_ms=300
)
JFK = np.frombuffer(samples_of(CLIPS["jfk"]), dtype="<i2")
SECOND = np.zeros(16_000, dtype=np.int16)


class CountingModel(SileroModel):
    """Counts the frames that the model is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def run(self, frames: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
        self.asked += len(frames)
        return super().run(frames, h, c)


def spans_of(
    samples: np.ndarray[Any, np.dtype[np.int16]], *, model: SileroModel = MODEL, block: int = 16_000
) -> list[tuple[int, int]]:
    """The spans of speech, found block by block."""
    detector, tracker = VoiceDetector(model), SpeechTracker()
    stretches = []
    for start in range(0, samples.size, block):
        stretches += tracker.push(detector.feed(samples[start : start + block]))
    stretches += tracker.finish(detector.finish(), samples.size)
    return joined(stretches)


def joined(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start, end in stretches:
        continues = bool(spans) and spans[-1][1] == start
        spans.append((spans.pop()[0] if continues else start, end))
    return spans


def reference(samples: np.ndarray[Any, np.dtype[np.int16]]) -> list[tuple[int, int]]:
    found = get_speech_timestamps(samples.astype(np.float32) / 32768, REFERENCE)
    return [(int(span["start"]), int(span["end"])) for span in found]


@each("clip", [*SPEECH, *NOISE])
def test_the_spans_are_those_of_the_batch_that_hears_everything_first(clip: Any) -> None:
    samples = np.frombuffer(samples_of(clip), dtype="<i2")
    assert spans_of(samples) == reference(samples)


def test_the_spans_of_a_conversation_with_long_silences_are_the_same_too() -> None:
    parts = [np.frombuffer(samples_of(clip), dtype="<i2") for clip in SPEECH]
    samples = np.concatenate([part for clip in parts for part in (SECOND, clip, SECOND, SECOND)])
    found, expected = spans_of(samples), reference(samples)
    assert len(found) == len(expected) > len(SPEECH)
    assert np.abs(np.array(found) - np.array(expected)).max() <= 4 * FRAME


@settings(max_examples=10, deadline=None)
@given(sizes=st.lists(st.integers(1, 9_000), min_size=1, max_size=60))
def test_the_answers_do_not_depend_on_how_the_stream_is_cut(sizes: list[int]) -> None:
    whole = VoiceDetector(MODEL).feed(JFK[: sum(sizes)])
    detector = VoiceDetector(MODEL)
    answers: list[float] = []
    position = 0
    for size in sizes:
        answers += detector.feed(JFK[position : position + size])
        position += size
    assert answers == pytest.approx(whole, abs=1e-4)


def test_silence_never_reaches_the_model() -> None:
    model = CountingModel()
    assert spans_of(np.zeros(30 * 16_000, dtype=np.int16), model=model) == []
    assert model.asked == 0


def test_after_half_a_second_of_silence_the_model_rests_until_there_is_sound() -> None:
    model = CountingModel()
    spans = spans_of(np.concatenate([*[SECOND] * 5, JFK, *[SECOND] * 10, JFK]), model=model)
    assert len(spans) == 2 * len(reference(JFK))
    assert model.asked <= 2 * (JFK.size // FRAME + 80)


def test_speech_far_below_a_whisper_is_still_found() -> None:
    low = (JFK / 10 ** (30 / 20)).astype(np.int16)
    assert np.abs(low).max() < 1_000
    heard = sum(end - start for start, end in spans_of(low))
    assert heard == pytest.approx(sum(end - start for start, end in spans_of(JFK)), rel=0.1)


probabilities = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.4, 0.6, 1.0]), st.integers(1, 50)), max_size=20
).map(lambda runs: [value for value, length in runs for _ in range(length)])


@given(values=probabilities, cuts=st.lists(st.integers(0, 1_000), max_size=8), short=st.integers(0, 511))
def test_what_is_reported_while_listening_is_never_taken_back(
    values: list[float], cuts: list[int], short: int
) -> None:
    total = max(0, len(values) * FRAME - short)
    at_once = SpeechTracker().finish(values, total)
    tracker = SpeechTracker()
    reported = []
    position = 0
    for cut in sorted(min(cut, max(0, len(values) - 1)) for cut in cuts):
        reported += tracker.push(values[position:cut])
        position = max(position, cut)
        assert all(end <= position * FRAME for _, end in reported)
    reported += tracker.finish(values[position:], total)
    assert joined(reported) == joined(at_once)
    assert all(0 <= start < end <= total for start, end in reported)


def test_a_click_is_no_speech_and_a_word_is() -> None:
    assert SpeechTracker().finish([1.0] * 3 + [0.0] * 60, 63 * FRAME) == []
    assert SpeechTracker().finish([0.0] * 20 + [1.0] * 4 + [0.0] * 60, 84 * FRAME) == [
        (20 * FRAME - 4_800, 24 * FRAME + 4_800)
    ]
