"""A token bucket and a sliding window allow a rate of events, and tell how long to wait."""

from __future__ import annotations

import pytest

from pipeline.domain.rates import SlidingWindow, TokenBucket


def test_a_bucket_allows_its_size_at_once_and_then_its_rate() -> None:
    bucket = TokenBucket(per_s=2.0, size=3, now=10.0)
    assert [bucket.take(10.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.wait_s(10.0) == pytest.approx(1.0)
    assert bucket.wait_s(11.0) == 0.0
    assert bucket.take(11.0)


def test_a_bucket_never_holds_more_than_its_size() -> None:
    bucket = TokenBucket(per_s=1.0, size=2, now=0.0)
    assert bucket.take(100.0, 2)
    assert bucket.wait_s(100.0, 2) == pytest.approx(2.0)
    assert bucket.wait_s(100.0, 50) == pytest.approx(2.0)


def test_a_bucket_spends_more_than_it_holds() -> None:
    bucket = TokenBucket(per_s=1.0, size=2, now=0.0)
    assert not bucket.take(0.0, 5)
    assert bucket.wait_s(0.0) == pytest.approx(4.0)


def test_a_window_allows_its_limit_in_any_period() -> None:
    window = SlidingWindow(2, 60.0)
    window.add(0.0)
    assert window.wait_s(0.0) == 0.0
    window.add(50.0)
    assert window.wait_s(50.0) == pytest.approx(10.0)
    assert window.wait_s(60.0) == 0.0
    window.add(60.0)
    assert window.wait_s(60.0) == pytest.approx(50.0)


def test_events_over_the_limit_lengthen_the_wait() -> None:
    window = SlidingWindow(2, 60.0)
    for at in (0.0, 1.0, 2.0):
        window.add(at)
    assert window.wait_s(2.0) == pytest.approx(59.0)


def test_a_removed_event_does_not_count() -> None:
    window = SlidingWindow(1, 60.0)
    window.add(1.0)
    window.remove(2.0)
    assert window.wait_s(2.0) == pytest.approx(59.0)
    window.remove(1.0)
    assert window.wait_s(2.0) == 0.0


def test_a_window_is_empty_after_its_last_event() -> None:
    window = SlidingWindow(2, 60.0)
    assert window.is_empty(0.0)
    window.add(0.0)
    assert not window.is_empty(59.0)
    assert window.is_empty(60.0)
