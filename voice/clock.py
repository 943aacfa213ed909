"""The port to time, as the ears need it. Whoever hosts them brings the clock; tests bring one that stands."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Seconds, in two kinds."""

    def now(self) -> float:
        """Unix time: for what is stored."""
        ...

    def monotonic(self) -> float:
        """For durations: never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...
