"""The clock port. The host application injects a clock; tests inject a manual one."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Two kinds of seconds."""

    def now(self) -> float:
        """Unix time: for what is stored."""
        ...

    def monotonic(self) -> float:
        """For durations: never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...
