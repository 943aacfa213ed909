"""Cutting a recording's speech into pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from voice.audio.segmentation import Cutter
from voice.audio.segments import SpeechSegment

RATE = 16_000
FRAME = 512


def recording(seconds: float) -> bytes:
    """Samples that count upwards, so that each place can be distinguished from its neighbours."""
    return np.arange(round(seconds * RATE), dtype=np.uint32).astype("<u2").tobytes()


def cut(
    pcm: bytes, spans: Sequence[tuple[int, int]], likelihoods: Sequence[float] = ()
) -> list[SpeechSegment]:
    cutter = Cutter()
    cutter.feed(pcm, likelihoods or [1.0] * (len(pcm) // 2 // FRAME))
    pieces = [piece for start, end in spans for piece in cutter.add(start, end)]
    return pieces + list(cutter.finish())


def at(*seconds: tuple[float, float]) -> list[tuple[int, int]]:
    return [(int(start * RATE), int(end * RATE)) for start, end in seconds]


def lengths(pieces: Sequence[SpeechSegment]) -> list[float]:
    return [round(piece.seconds, 2) for piece in pieces]


def test_no_speech_makes_no_pieces() -> None:
    assert cut(recording(10), []) == []


def test_up_to_twenty_five_seconds_of_speech_without_a_long_pause_are_one_piece() -> None:
    pcm = recording(60)
    (piece,) = cut(pcm, at((1, 26)))
    assert piece.spans == ((1.0, 26.0),)
    assert piece.pcm == pcm[32_000 : 26 * 32_000]


def test_speech_on_both_sides_of_a_long_pause_is_never_one_piece() -> None:
    pcm = recording(60)
    pieces = cut(pcm, at((1, 6), (7, 11), (30, 36)))
    assert [piece.spans for piece in pieces] == [((1, 6),), ((7, 11),), ((30, 36),)]
    assert [piece.pcm for piece in pieces] == [
        pcm[32_000 : 6 * 32_000],
        pcm[7 * 32_000 : 11 * 32_000],
        pcm[30 * 32_000 : 36 * 32_000],
    ]


def test_a_piece_comes_out_as_soon_as_speech_begins_again_behind_it() -> None:
    cutter = Cutter()
    cutter.feed(recording(20), [1.0] * (20 * RATE // FRAME))
    assert list(cutter.add(0, 4 * RATE)) == []
    (first,) = cutter.add(6 * RATE, 7 * RATE)
    assert (first.index, first.spans) == (0, ((0.0, 4.0),))


def test_each_span_is_cut_by_its_own_length() -> None:
    pieces = cut(recording(60), at((0, 8), (10, 40)))
    assert pieces[0].spans == ((0.0, 8.0),)
    assert 15 <= pieces[1].seconds <= 20
    assert len(pieces) == 3


def test_speech_without_a_pause_is_cut_where_it_is_least_likely() -> None:
    likelihoods = [1.0] * (30 * RATE // FRAME)
    breath = int(17.5 * RATE) // FRAME
    likelihoods[breath - 3 : breath + 4] = [0.2] * 7
    first, second = cut(recording(30), at((0, 30)), likelihoods)
    assert abs(first.seconds - 17.5) < 0.1
    assert second.spans[0][0] == first.spans[0][1]


def test_among_equally_likely_places_the_quietest_is_cut() -> None:
    samples = np.tile(np.array([9_000, -9_000], dtype="<i2"), 15 * RATE)
    samples[16 * RATE : 16 * RATE + 4_000] = 0
    first, _ = cut(samples.tobytes(), at((0, 30)))
    assert 16.0 <= first.seconds <= 16.25


def test_what_remains_is_never_a_scrap() -> None:
    pieces = cut(recording(46), at((0, 45.5)))
    assert all(seconds > 7 for seconds in lengths(pieces))


def test_a_piece_comes_out_as_soon_as_more_than_twenty_five_seconds_are_known() -> None:
    cutter = Cutter()
    cutter.feed(recording(60), [1.0] * (60 * RATE // FRAME))
    assert list(cutter.add(0, 25 * RATE)) == []
    (first,) = cutter.add(25 * RATE, 26 * RATE)
    assert first.index == 0
    assert list(cutter.add(26 * RATE, 30 * RATE)) == []


spans_in_frames = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 1_500)), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None)
@given(
    shape=spans_in_frames, steps=st.lists(st.integers(1, 40_000), min_size=1, max_size=20), seed=st.integers()
)
def test_no_sample_of_speech_is_lost_or_doubled_however_it_arrives(
    shape: list[tuple[int, int]], steps: list[int], seed: int
) -> None:
    spans: list[tuple[int, int]] = []
    position = 0
    for gap, length in shape:
        start = position + gap * 300
        position = start + length * 300
        spans.append((start, position))
    pcm = recording(position / RATE)
    likelihoods = np.random.default_rng(abs(seed)).random(position // FRAME + 1).tolist()

    cutter = Cutter()
    cutter.feed(pcm, likelihoods)
    pieces: list[SpeechSegment] = []
    for number, (start, end) in enumerate(spans):
        step = steps[number % len(steps)]
        for part in range(start, end, step):
            pieces += cutter.add(part, min(end, part + step))
    pieces += cutter.finish()

    assert pieces == cut(pcm, spans, likelihoods)
    speech = b"".join(pcm[2 * start : 2 * end] for start, end in spans)
    assert b"".join(piece.pcm for piece in pieces) == speech
    assert [piece.index for piece in pieces] == list(range(len(pieces)))
    for piece in pieces:
        ((start_s, end_s),) = piece.spans
        begun, ended = next((a / RATE, b / RATE) for a, b in spans if a / RATE <= start_s < b / RATE)
        assert end_s <= ended
        whole = ended - begun <= 25
        assert (start_s, end_s) == (begun, ended) if whole else piece.seconds <= 20
        assert whole or end_s == ended or piece.seconds >= 7
        assert round((end_s - start_s) * RATE) == len(piece.pcm) // 2
