"""Whether an account's platform can be reached, as calls to it tell: for those who wait to try again.

An outage ends for all chats at once: the first call that works, or the channel's coming up, ends the waits of
all. A call that fails while others work says something about that call: it waits its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapters.channel import ChannelHealth
from pipeline.domain.clock import Clock

_LOOK_S = 1.0
"""How often whoever waits looks whether the channel is up."""
_PROBE_S = 1.0
"""While nothing works, the least time between two attempts of the account: the others learn from one."""


class Reach:
    """One account's. `health` says whether its channel receives."""

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
        """A call of the account has worked."""
        self._worked += 1
        self._changed.set()

    async def wait(self, seconds: float, *, least_s: float, since: int) -> None:
        """Return after `seconds`, or sooner when a call works that `worked` did not count as `since`, or when
        the channel comes up; in any case after `least_s`."""
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
