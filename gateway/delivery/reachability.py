"""Track whether an account's platform is reachable, to end retry waits early.

An outage ends for all chats at once: the first successful call, or the channel coming up, ends the waits of
all. A call that fails while others work has its own problem and waits its full time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapters.channel import ChannelHealth
from pipeline.domain.clock import Clock

_LOOK_S = 1.0
"""Seconds between two checks of the channel's health during a wait."""
_PROBE_S = 1.0
"""Minimum seconds between two attempts of the account during an outage: one attempt is enough for all."""


class Reach:
    """The reachability of one account. `health` returns the health of its channel."""

    def __init__(self, clock: Clock, health: Callable[[], ChannelHealth]) -> None:
        self._clock = clock
        self._health = health
        self._worked = 0
        self._changed = asyncio.Event()
        self._next_probe = 0.0

    @property
    def worked(self) -> int:
        """How many calls have worked so far."""
        return self._worked

    def succeeded(self) -> None:
        """Record a successful call of the account."""
        self._worked += 1
        self._changed.set()

    async def wait(self, seconds: float, *, least_s: float, since: int) -> None:
        """Return after `seconds`, or earlier when `worked` exceeds `since` or the channel comes up, but not
        before `least_s`."""
        deadline = self._clock.monotonic() + seconds
        was_up = self._up()
        await self._clock.sleep(min(least_s, seconds))
        while self._worked == since and (was_up or not self._up()):
            now = self._clock.monotonic()
            left = max(deadline, self._next_probe) - now
            if left <= 0:
                self._next_probe = now + _PROBE_S
                return
            was_up = was_up and self._up()
            self._changed.clear()
            try:
                async with self._clock.timeout(min(left, _LOOK_S)):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _up(self) -> bool:
        return self._health().state == "up"
