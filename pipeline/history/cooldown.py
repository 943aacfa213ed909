"""Sessions whose last summary failed, and until when they are left alone. A restart forgives them."""

from __future__ import annotations

from collections import OrderedDict

from pipeline.domain.clock import Clock

_MOST = 1_000
"""Sessions; those that have waited longest are forgotten first."""


class Cooldown:
    """What waits `seconds` after a failure, by session."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: OrderedDict[str, float] = OrderedDict()

    def is_over(self, session_id: str, clock: Clock) -> bool:
        """Whether the session may be tried again; so may one that never failed."""
        return clock.monotonic() >= self._until.get(session_id, 0.0)

    def begin(self, session_id: str, clock: Clock) -> None:
        """The session has just failed."""
        self._until[session_id] = clock.monotonic() + self._seconds
        self._until.move_to_end(session_id)
        while len(self._until) > _MOST:
            self._until.popitem(last=False)
