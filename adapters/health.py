"""Track the state of a channel's receive path."""

from __future__ import annotations

from dataclasses import replace

from adapters.channel import ChannelHealth
from pipeline.domain.clock import Clock


class HealthTracker:
    """The health of one channel, `starting` at first. Every change keeps the time of the last sign of life,
    which only `received` sets."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._health = ChannelHealth(state="starting")

    def read(self) -> ChannelHealth:
        """The current health."""
        return self._health

    def starting(self) -> None:
        """The channel connects."""
        self._health = replace(self._health, state="starting", detail="")

    def up(self, detail: str = "") -> None:
        """The channel can receive."""
        self._health = replace(self._health, state="up", detail=detail)

    def down(self, detail: str) -> None:
        """Nothing can be received; `detail` says why."""
        self._health = replace(self._health, state="down", detail=detail)

    def received(self) -> None:
        """The platform has just sent something."""
        self._health = replace(self._health, received_at=self._clock.monotonic())
