"""Times of speech, mapped back to the recording."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.audio.spans import SpeechSpans, split_spans

TWO = SpeechSpans([(1.0, 4.0), (9.0, 12.0)])


@pytest.mark.parametrize(
    ("segment", "recording"),
    [
        ((0.0, 3.0), (1.0, 4.0)),
        ((3.0, 6.0), (9.0, 12.0)),
        ((2.8, 6.0), (9.0, 12.0)),
        ((0.0, 3.2), (1.0, 4.0)),
        ((1.0, 5.0), (2.0, 11.0)),
        ((0.5, 30.0), (1.5, 12.0)),
        ((5.0, 5.0), (11.0, 11.0)),
    ],
)
def test_a_segment_gets_the_times_of_the_span_it_lies_in(
    segment: tuple[float, float], recording: tuple[float, float]
) -> None:
    assert TWO.in_recording(*segment) == pytest.approx(recording)


@given(start=st.floats(0, 6), length=st.floats(0, 6))
def test_a_segment_never_starts_after_it_ends_and_stays_inside_the_recording(
    start: float, length: float
) -> None:
    first, last = TWO.in_recording(start, start + length)
    assert 1.0 <= first <= last <= 12.0


def test_no_speech_has_no_times() -> None:
    with pytest.raises(ValueError, match="at least one span"):
        SpeechSpans([])


def test_spans_are_split_at_a_time_of_the_speech_alone() -> None:
    spans = ((1.0, 3.0), (10.0, 14.0))
    assert split_spans(spans, 1.5) == (((1.0, 2.5),), ((2.5, 3.0), (10.0, 14.0)))
    assert split_spans(spans, 2.0) == (((1.0, 3.0),), ((10.0, 14.0),))
    assert split_spans(spans, 5.0) == (((1.0, 3.0), (10.0, 13.0)), ((13.0, 14.0),))
    for outside in (0.0, 6.0, 9.0):
        with pytest.raises(ValueError, match="inside the speech"):
            split_spans(spans, outside)
