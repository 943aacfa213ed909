"""Whether a person sends faster than people do: a pure function of when their messages arrived.

It only flags. How many messages a person may send at all is the gateway's quota.
"""

from __future__ import annotations

from collections.abc import Sequence

MIN_INTERVAL_MS = 400
"""Seed 0: RATE_LIMIT_INTERVAL_MS. Exactly so much is enough."""
BURST_MESSAGES = 12
BURST_WINDOW_MS = 10_000
"""Seed 0: RATE_LIMIT_BURST_MAX and WINDOW. The 13th message within the window is too many."""
_TOO_SOON = "less than 400 ms after the message before"
_BURST = "message {count} within 10 seconds"


def too_fast(now: float, earlier: Sequence[float]) -> str | None:
    """Why a message that arrived at `now` came too fast after `earlier` ones (Unix times, oldest first, those
    that were too fast themselves included); None where it did not.

    Times are compared in whole milliseconds. One that lies in the future is of a clock that has been set
    back since. It says nothing, or a person would have to wait until the clock has caught up.
    """
    now_ms = _ms(now)
    ages = [now_ms - at for at in map(_ms, earlier) if at <= now_ms]
    if not ages:
        return None
    if min(ages) < MIN_INTERVAL_MS:
        return _TOO_SOON
    within = sum(age <= BURST_WINDOW_MS for age in ages)
    return _BURST.format(count=within + 1) if within >= BURST_MESSAGES else None


def told_lately(now: float, earlier: Sequence[float]) -> bool:
    """Whether one of `earlier` was too fast itself, in the window before `now`."""
    first = _ms(now) - BURST_WINDOW_MS
    return any(
        first <= _ms(at) <= _ms(now) and too_fast(at, earlier[:place]) for place, at in enumerate(earlier)
    )


def _ms(at: float) -> int:
    return round(at * 1000)
