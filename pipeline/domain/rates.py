"""Count events against a rate: a token bucket and a sliding window.

Times are passed in as seconds of a monotonic clock and never go backwards; nothing here reads a clock.
"""

from __future__ import annotations

from collections import deque


class TokenBucket:
    """Holds at most `size` tokens, is full at first, and gains `per_s` tokens (more than 0) a second."""

    def __init__(self, *, per_s: float, size: float, now: float) -> None:
        self._per_s = per_s
        self._size = size
        self._tokens = size
        self._counted_at = now

    def wait_s(self, now: float, tokens: float = 1.0) -> float:
        """Seconds until the bucket holds `tokens`, or is full if they are more than its size; 0 for now."""
        self._refill(now)
        return max(0.0, (min(tokens, self._size) - self._tokens) / self._per_s)

    def take(self, now: float, tokens: float = 1.0) -> bool:
        """Spend `tokens`; False if the bucket held fewer. It spends them anyway, and the next wait is
        longer."""
        self._refill(now)
        self._tokens -= tokens
        return self._tokens >= 0

    def _refill(self, now: float) -> None:
        self._tokens = min(self._size, self._tokens + (now - self._counted_at) * self._per_s)
        self._counted_at = now


class SlidingWindow:
    """Allows `limit` events (1 or more) in any `seconds`. It keeps the times of the last `limit` events."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=limit)

    def wait_s(self, now: float) -> float:
        """Seconds until one more event is within the limit; 0 for now."""
        if len(self._times) != self._times.maxlen:
            return 0.0
        return max(0.0, self._seconds - (now - self._times[0]))

    def add(self, now: float) -> None:
        """Count an event, also one over the limit."""
        self._times.append(now)

    def remove(self, at: float) -> None:
        """Uncount an event of the time `at`, if there is one."""
        if at in self._times:
            self._times.remove(at)

    def ages(self, now: float) -> list[float]:
        """How long ago the counted events of the last `seconds` were, oldest first."""
        return [now - at for at in self._times if now - at < self._seconds]

    def is_empty(self, now: float) -> bool:
        """Whether no counted event is within the last `seconds`."""
        return not self._times or now - self._times[-1] >= self._seconds
