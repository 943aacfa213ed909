"""Where speech begins, pauses and ends: by hand, and for any stream of probabilities."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.streaming.segmenter import (
    FRAME_S,
    Began,
    Cut,
    Decision,
    Ended,
    Paused,
    Resumed,
    Segmenter,
    SegmentRules,
    TooShort,
)

VOICE, SILENCE = 0.95, 0.02


def decided(*spans: tuple[float, float], rules: SegmentRules | None = None) -> list[tuple[int, Decision]]:
    """(frame, decision) for stretches of (seconds, probability)."""
    return judged([p for seconds, p in spans for _ in range(round(seconds / FRAME_S))], rules)


def judged(probabilities: list[float], rules: SegmentRules | None = None) -> list[tuple[int, Decision]]:
    segmenter = Segmenter(rules)
    return [(at, one) for at, p in enumerate(probabilities, start=1) for one in segmenter.feed(p)]


def test_speech_begins_after_four_frames_and_takes_half_a_second_before_it_along() -> None:
    [(frame, began)] = decided((2.0, SILENCE), (0.2, VOICE))
    onset = round(2.0 / FRAME_S)
    assert frame == onset + 4
    assert began == Began(segment=1, start=onset - 16)


def test_there_is_no_sound_before_the_first_frame() -> None:
    assert decided((0.2, VOICE))[0][1] == Began(segment=1, start=0)


def test_three_loud_frames_are_not_speech() -> None:
    assert not decided((1.0, SILENCE), (0.096, VOICE), (1.0, SILENCE))


def test_a_silence_is_a_pause_first_and_the_end_later_over_the_same_sound() -> None:
    frames = decided((0.5, SILENCE), (1.024, VOICE), (1.0, SILENCE))
    spoken_until = 16 + 32
    assert [(at - spoken_until, one) for at, one in frames[1:]] == [
        (11, Paused(segment=1, start=0, end=spoken_until + 11)),
        (25, Ended(segment=1, start=0, end=spoken_until + 11, voice_end=spoken_until)),
    ]


def test_speech_that_continues_within_the_pause_is_the_same_segment() -> None:
    found = [one for _, one in decided((1.0, VOICE), (0.6, SILENCE), (1.0, VOICE), (0.9, SILENCE))]
    assert [type(one) for one in found] == [Began, Paused, Resumed, Paused, Ended]
    assert found[3] == Paused(segment=1, start=0, end=31 + 19 + 31 + 11)


def test_a_click_in_a_pause_neither_resumes_nor_delays_the_end() -> None:
    found = decided((1.0, VOICE), (0.512, SILENCE), (0.032, VOICE), (1.0, SILENCE))
    assert [type(one) for _, one in found] == [Began, Paused, Ended]
    assert found[-1][0] == 31 + 25


def test_the_soft_end_of_a_word_is_still_speech() -> None:
    found = decided((1.0, VOICE), (0.64, 0.4), (1.0, SILENCE))
    assert found[1][0] == 31 + 20 + 11


def test_a_cough_is_too_short_and_never_heard() -> None:
    found = [one for _, one in decided((0.5, SILENCE), (0.224, VOICE), (1.0, SILENCE))]
    assert found == [Began(segment=1, start=0), TooShort(segment=1)]


def test_the_sound_before_a_segment_never_reaches_into_the_one_before() -> None:
    found = [one for _, one in decided((1.0, VOICE), (0.81, SILENCE), (1.0, VOICE))]
    assert isinstance(found[2], Ended)
    assert found[3] == Began(segment=2, start=max(found[2].end, 31 + 25 - 16))


def test_speech_without_a_pause_is_cut_in_the_gap_that_is_least_a_voice() -> None:
    gap = 12.0
    found = decided((gap, VOICE), (0.16, 0.36), (4.0, VOICE), (1.0, SILENCE))
    cut, ended = (one for _, one in found if isinstance(one, Cut | Ended))
    assert cut == Cut(segment=1, start=0, end=round(gap / FRAME_S) + 2)
    assert isinstance(ended, Ended)
    assert (ended.segment, ended.start) == (2, cut.end)


def test_the_tail_of_a_cut_is_heard_however_short_it_is() -> None:
    found = [one for _, one in decided((15.008, VOICE), (1.0, SILENCE))]
    assert [type(one) for one in found] == [Began, Cut, Paused, Ended]


def test_who_is_through_ends_the_segment_where_they_are() -> None:
    segmenter = Segmenter()
    for _ in range(20):
        segmenter.feed(VOICE)
    assert segmenter.finish() == (Ended(segment=1, start=0, end=20, voice_end=20),)
    assert segmenter.finish() == ()


def test_after_the_end_the_stream_can_continue() -> None:
    segmenter = Segmenter()
    for _ in range(20):
        segmenter.feed(VOICE)
    segmenter.finish()
    assert [one for _ in range(3) for one in segmenter.feed(VOICE)] == [Began(segment=2, start=20)]


@pytest.mark.parametrize(
    "wrong",
    [{"keep_threshold": 0.6}, {"commit_s": 0.2}, {"pre_roll_s": -1.0}, {"cut_window_s": 15.0}],
)
def test_rules_that_contradict_each_other_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="live speech"):
        SegmentRules(**wrong)


_SMALL = SegmentRules(cap_s=1.6, cut_window_s=0.8)
_STREAMS = st.lists(
    st.tuples(st.sampled_from([SILENCE, 0.2, 0.4, 0.6, VOICE]), st.integers(1, 40)), max_size=25
).map(lambda runs: [p for p, length in runs for _ in range(length)])


@given(_STREAMS)
def test_the_decisions_about_a_segment_come_in_order_and_end(probabilities: list[float]) -> None:
    segmenter = Segmenter(_SMALL)
    found = [one for p in probabilities for one in segmenter.feed(p)] + list(segmenter.finish())
    paused: dict[int, Paused] = {}
    live, over = 0, 0
    for one in found:
        match one:
            case Began():
                assert (live, one.segment) == (0, over + 1)
                live = one.segment
            case Paused():
                assert one.segment == live
                assert live not in paused
                paused[live] = one
            case Resumed():
                assert paused.pop(one.segment).segment == live
            case Cut():
                assert one.segment == live
                assert live not in paused
                live, over = live + 1, over + 1
            case Ended() | TooShort():
                assert one.segment == live
                live, over = 0, over + 1
    assert live == 0


@given(_STREAMS)
def test_segments_do_not_overlap_and_none_is_longer_than_the_cap_and_a_pause(
    probabilities: list[float],
) -> None:
    segmenter = Segmenter(_SMALL)
    found = [one for p in probabilities for one in segmenter.feed(p)] + list(segmenter.finish())
    spans = [(one.start, one.end) for one in found if isinstance(one, Ended | Cut)]
    assert all(start < end for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert all((end - start) * FRAME_S <= _SMALL.cap_s + _SMALL.commit_s for start, end in spans)


@given(_STREAMS)
def test_every_voice_of_a_word_is_in_a_segment_and_its_sound_is_kept_until_then(
    probabilities: list[float],
) -> None:
    segmenter = Segmenter(_SMALL)
    heard: set[int] = set()
    dropped, kept = False, 0
    for p in [*probabilities, *[SILENCE] * 60]:
        assert segmenter.keep_from >= kept
        kept = segmenter.keep_from
        for one in segmenter.feed(p):
            dropped = dropped or isinstance(one, TooShort)
            if isinstance(one, Ended | Cut):
                assert one.start >= kept
                heard.update(range(one.start, one.end))
    word = 10
    for start in range(len(probabilities) - word):
        if not dropped and min(probabilities[start : start + word]) >= 0.6:
            assert heard.issuperset(range(start, start + word))


@given(_STREAMS)
def test_a_segment_ends_within_the_committed_silence_after_its_last_voice(probabilities: list[float]) -> None:
    for frame, one in judged([*probabilities, *[SILENCE] * 60]):
        if isinstance(one, Ended):
            assert frame - one.voice_end == 25
