"""Detect messages that arrive faster than a person types: pure functions of the times of arrival.

The result is a flag; `gateway.access` limits how many messages a person may send. Not a `SlidingWindow`: the
times are Unix times from the records, a message exactly at the window's start counts, and so do refused ones.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

MIN_INTERVAL_MS = 400
"""An interval of exactly this length is allowed."""
BURST_MESSAGES = 12
BURST_WINDOW_MS = 10_000
"""The 13th message within the window is too many."""
_MS_PER_S = 1000.0
_TOO_SOON = "less than 400 ms after the message before"
_BURST = "message {count} within 10 seconds"


def too_fast(now: float, earlier: Sequence[float]) -> str | None:
    """Why a message that arrived at `now` came too fast after the `earlier` ones; None where it did not.

    Times are Unix times, oldest first, and include messages that were too fast; they are compared in whole
    milliseconds. A time in the future means that the clock has been set back: it is ignored, or the person
    would have to wait until the clock has caught up.
    """
    now_ms = _ms(now)
    if earlier and (newest := max(earlier)) <= now:  # nearly always: no clock was set back
        since = now_ms - _ms(newest)
        if since < MIN_INTERVAL_MS:
            return _TOO_SOON
        if since > BURST_WINDOW_MS:
            return None
    # No bytecode for each of them: a busy chat has many. They are out of order where a clock was set back.
    times = sorted(map(round, map(_MS_PER_S.__mul__, earlier)))
    until = bisect_right(times, now_ms)
    if not until:
        return None
    if now_ms - times[until - 1] < MIN_INTERVAL_MS:
        return _TOO_SOON
    within = until - bisect_left(times, now_ms - BURST_WINDOW_MS)
    return _BURST.format(count=within + 1) if within >= BURST_MESSAGES else None


def refused_lately(now: float, earlier: Sequence[float]) -> bool:
    """Whether one of `earlier` was itself too fast, in the burst window before `now`."""
    first = _ms(now) - BURST_WINDOW_MS
    return any(
        first <= _ms(at) <= _ms(now) and too_fast(at, earlier[:place]) for place, at in enumerate(earlier)
    )


def _ms(at: float) -> int:
    return round(at * _MS_PER_S)
