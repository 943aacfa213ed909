"""Delay the next summary of a session after one has failed. A restart ends all delays."""

from __future__ import annotations

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock

_MOST = 1_000
"""Sessions; the ones with the oldest failures are removed first."""


class Cooldown:
    """Delays of `seconds` after a failure, per session."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = BoundedDict[str, float](_MOST)

    def is_over(self, session_id: str, clock: Clock) -> bool:
        """Whether the session may be tried again; True for one that never failed."""
        return clock.monotonic() >= self._until.get(session_id, 0.0)

    def begin(self, session_id: str, clock: Clock) -> None:
        """Start the delay of a session that has just failed."""
        self._until[session_id] = clock.monotonic() + self._seconds
