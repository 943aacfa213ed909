"""Time as a dependency: the real clock and the manual one that tests turn by hand.

The rest of the project calls no clock of the standard library; a lint rule keeps it so.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import time
from collections.abc import Callable
from typing import Protocol


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
    """A clock that stands still until `advance` moves it. Ships for tests and simulations."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._elapsed = 0.0
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

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
        timeout = asyncio.timeout(None)
        self._ring_after(seconds, lambda: _expire(timeout))
        return timeout

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        wanted = [callback]
        self._ring_after(max(0.0, seconds), lambda: wanted.pop()() if wanted else None)
        return wanted.clear

    def step_wall(self, seconds: float) -> None:
        """Jump the wall clock alone, as a time server or an operator would."""
        self._now += seconds

    async def advance(self, seconds: float) -> None:
        """Move both clocks forward, waking sleepers and firing timeouts in order, letting each run."""
        target = self._elapsed + seconds
        await _let_others_run()
        while self._alarms and self._alarms[0][0] <= target:
            due, _, ring = heapq.heappop(self._alarms)
            self._move_to(due)
            ring()
            await _let_others_run()
        self._move_to(target)

    def _ring_after(self, seconds: float, ring: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._alarms, (self._elapsed + seconds, self._order, ring))

    def _move_to(self, elapsed: float) -> None:
        self._now += elapsed - self._elapsed
        self._elapsed = elapsed


def _expire(timeout: asyncio.Timeout) -> None:
    # asyncio refuses to move the deadline of a timeout whose block has been left, or is being left.
    with contextlib.suppress(RuntimeError):
        timeout.reschedule(asyncio.get_running_loop().time())


async def _let_others_run() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
