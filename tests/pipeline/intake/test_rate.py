"""Too fast: the interval, the burst, and clocks that are set back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.intake.rate import refused_lately, too_fast
from tests.support.tables import each

NOW = 1_700_000_000.0
SOON = "less than 400 ms after the message before"


def test_the_first_message_is_never_too_fast() -> None:
    assert too_fast(NOW, ()) is None


@each("second", range(20))
def test_exactly_400_ms_after_the_one_before_is_slow_enough(second: int) -> None:
    before = NOW + second * 0.1
    assert too_fast(before + 0.4, (before,)) is None
    assert too_fast(before + 0.399, (before,)) == SOON


def test_the_seeds_own_case_three_messages_in_the_last_300_ms() -> None:
    assert too_fast(NOW, (NOW - 0.3, NOW - 0.2, NOW - 0.1)) == SOON


def test_the_thirteenth_message_in_ten_seconds_is_a_burst() -> None:
    earlier = tuple(NOW - 10 + 0.8 * number for number in range(12))
    assert too_fast(NOW, earlier) == "message 13 within 10 seconds"
    assert too_fast(NOW, earlier[1:]) is None
    assert too_fast(NOW + 0.001, earlier) is None, "the oldest is 10.001 s old"


def test_the_interval_is_looked_at_before_the_burst() -> None:
    earlier = tuple(NOW - 0.5 * number for number in range(12, 0, -1))
    assert too_fast(NOW, earlier) == "message 13 within 10 seconds"
    assert too_fast(NOW - 0.2, earlier) == SOON


def test_limited_messages_count_so_a_flood_stays_limited_until_it_pauses() -> None:
    flood = [NOW + 0.5 * number for number in range(30)]
    found = [too_fast(at, flood[:place]) for place, at in enumerate(flood)]
    assert found[:12] == [None] * 12
    assert all(found[12:])
    assert too_fast(flood[-1] + 10.001, flood) is None


def test_a_clock_that_is_set_back_limits_no_one_now_or_later() -> None:
    earlier = [NOW + 3600 + number for number in range(30)]
    assert too_fast(NOW, earlier) is None
    assert too_fast(NOW + 1, [*earlier, NOW]) is None
    assert too_fast(NOW + 1.2, [*earlier, NOW, NOW + 1]) == SOON


def test_a_flood_is_reported_at_length_once_in_its_window() -> None:
    flood = [NOW + 0.5 * number for number in range(16)]
    assert [refused_lately(at, flood[:place]) for place, at in enumerate(flood)][12:] == [
        False,
        True,
        True,
        True,
    ]
    assert not refused_lately(flood[-1] + 10.001, flood)


@given(gaps=st.lists(st.integers(min_value=0, max_value=3_000), max_size=30))
def test_it_agrees_with_counting_by_hand(gaps: list[int]) -> None:
    at, earlier = 0, [0]
    for gap in gaps:
        at += gap
        within = [one for one in earlier if at - one <= 10_000]
        limited = at - earlier[-1] < 400 or len(within) >= 12
        reason = too_fast(NOW + at / 1000, tuple(NOW + one / 1000 for one in earlier))
        assert (reason is not None) == limited
        earlier.append(at)
