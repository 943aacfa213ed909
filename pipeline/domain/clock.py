"""Time as a dependency: the real clock and the manual one that tests turn by hand.

The rest of the project calls no clock of the standard library; a lint rule keeps it so.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import time
from collections.abc import Callable
from typing import Protocol

_NANO = 1_000_000_000


class Clock(Protocol):
    """What anything that waits or stamps asks for."""

    def now(self) -> float:
        """Unix time in seconds, for display and records; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, for durations; never goes backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; at once for zero or less."""
        ...

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """As `asyncio.timeout`: `async with` it, and TimeoutError comes after `seconds`; None never."""
        ...

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after `seconds`, from the event loop; what is returned calls it off."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()  # noqa: TID251 - this is the Clock

    # The engine asks twice a step: without a function of ours between.
    monotonic = staticmethod(time.monotonic)  # noqa: TID251 - this is the Clock

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        return asyncio.timeout(seconds)

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_later(max(0.0, seconds), callback).cancel


class ManualClock:
    """A clock that stands still until `advance` moves it. Ships for tests and simulations.

    It counts whole nanoseconds, so that steps add up exactly: what waits 10 seconds is woken by the hundredth
    `advance(0.1)`.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._began = _nanoseconds(start)
        """When the monotonic time was 0, as Unix time."""
        self._elapsed = 0
        self._alarms: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0

    def now(self) -> float:
        return (self._began + self._elapsed) / _NANO

    def monotonic(self) -> float:
        return self._elapsed / _NANO

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ring_after(seconds, lambda: None if future.done() else future.set_result(None))
        await future

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        if seconds is None or seconds <= 0:
            return asyncio.timeout(seconds)
        timeout = _ManualTimeout(None)
        self._ring_after(seconds, timeout.expire)
        return timeout

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        wanted = [callback]
        self._ring_after(max(0.0, seconds), lambda: wanted.pop()() if wanted else None)
        return wanted.clear

    def step_wall(self, seconds: float) -> None:
        """Jump the wall clock alone, as a time server or an operator would."""
        self._began += _nanoseconds(seconds)

    async def advance(self, seconds: float) -> None:
        """Move both clocks forward, waking sleepers and firing timeouts in order, letting each run."""
        target = self._elapsed + _nanoseconds(seconds)
        await _let_others_run()
        while self._alarms and self._alarms[0][0] <= target:
            due, _, ring = heapq.heappop(self._alarms)
            self._elapsed = due
            ring()
            await _let_others_run()
        self._elapsed = target

    def _ring_after(self, seconds: float, ring: Callable[[], None]) -> None:
        if math.isinf(seconds):
            return
        # At least one: whoever waits again and again for the rest of a float must come to its end.
        wait = max(1, _nanoseconds(seconds)) if seconds > 0 else 0
        self._order += 1
        heapq.heappush(self._alarms, (self._elapsed + wait, self._order, ring))


def _nanoseconds(seconds: float) -> int:
    return round(seconds * _NANO)


class _ManualTimeout(asyncio.Timeout):  # type: ignore[misc] # final for type checkers only
    """A timeout that a clock expires. As with asyncio's own, its time runs from the moment it is made: one
    that expires before its block is entered ends the block at its first wait."""

    _is_due = False

    def expire(self) -> None:
        """The time is over. Does nothing once the block is left."""
        self._is_due = True
        # asyncio refuses to move the deadline of a timeout whose block is not entered yet or has been left.
        with contextlib.suppress(RuntimeError):
            self.reschedule(asyncio.get_running_loop().time())

    async def __aenter__(self) -> asyncio.Timeout:
        entered = await super().__aenter__()
        if self._is_due:
            self.expire()
        return entered


async def _let_others_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
