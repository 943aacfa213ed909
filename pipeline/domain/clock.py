"""Time as a dependency: the system clock, and a manual clock for tests.

No other module calls a clock of the standard library; a lint rule enforces it.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import time
from collections.abc import Awaitable, Callable, Generator
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

_NANO = 1_000_000_000

T = TypeVar("T")


def utc_stamp(at: float) -> str:
    """A Unix time as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Clock(Protocol):
    """The clock of every component that waits or needs the time."""

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
        """As `asyncio.timeout`: the `async with` block raises TimeoutError after `seconds`; None never."""
        ...

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after `seconds`, from the event loop; returns a function that cancels it."""
        ...


class SystemClock:
    """The machine's clock."""

    # Every turn reads both many times, so no function of this module lies in between.
    now = staticmethod(time.time)  # noqa: TID251 - this is the Clock
    monotonic = staticmethod(time.monotonic)  # noqa: TID251 - this is the Clock

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        return asyncio.timeout(seconds)

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        return asyncio.get_running_loop().call_later(max(0.0, seconds), callback).cancel


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """The result of `work`. Raises what it raises, and TimeoutError if it waits longer than `seconds`. A
    timer is set only once it waits, which much work never does."""
    steps = work.__await__()
    try:
        awaited = steps.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with clock.timeout(seconds):
        return await _Rest(steps, awaited)


class _Rest(Generic[T]):
    """Awaits work that has begun to wait."""

    def __init__(self, steps: Generator[Any, Any, T], awaited: object) -> None:
        self._steps = steps
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        steps, awaited = self._steps, self._awaited
        try:
            while True:
                try:
                    woken_with = yield awaited
                except BaseException as error:  # noqa: BLE001 - passed on, a cancellation too
                    awaited = steps.throw(error)
                else:
                    awaited = steps.send(woken_with)
        except StopIteration as done:
            result: T = done.value
            return result


class ManualClock:
    """A clock that only `advance` moves. Shipped for tests and simulations.

    It counts whole nanoseconds, so that steps add up exactly: the hundredth `advance(0.1)` ends a wait of
    10 seconds.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._began = _nanoseconds(start)
        """The Unix time at monotonic time 0, in nanoseconds."""
        self._elapsed = 0
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
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
        self._schedule(seconds, lambda: None if future.done() else future.set_result(None))
        await future

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        if seconds is None or seconds <= 0:
            return asyncio.timeout(seconds)
        timeout = _ManualTimeout(None)
        self._schedule(seconds, timeout.expire)
        return timeout

    def call_after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        wanted = [callback]
        self._schedule(max(0.0, seconds), lambda: wanted.pop()() if wanted else None)
        return wanted.clear

    def step_wall(self, seconds: float) -> None:
        """Move only the wall clock, as a time server or an operator would."""
        self._began += _nanoseconds(seconds)

    async def advance(self, seconds: float) -> None:
        """Move both clocks forward; wake sleepers and fire timeouts in order, and let each run."""
        target = self._elapsed + _nanoseconds(seconds)
        await _run_other_tasks()
        while self._timers and self._timers[0][0] <= target:
            due, _, fire = heapq.heappop(self._timers)
            self._elapsed = due
            fire()
            await _run_other_tasks()
        self._elapsed = target

    def _schedule(self, seconds: float, fire: Callable[[], None]) -> None:
        if math.isinf(seconds):
            return
        # At least one: a loop that waits for the rest of a float again and again must end.
        wait = max(1, _nanoseconds(seconds)) if seconds > 0 else 0
        self._order += 1
        heapq.heappush(self._timers, (self._elapsed + wait, self._order, fire))


def _nanoseconds(seconds: float) -> int:
    return round(seconds * _NANO)


class _ManualTimeout(asyncio.Timeout):  # type: ignore[misc] # final for type checkers only
    """A timeout that a clock expires. As in asyncio, its time runs from its creation: one that expires
    before its block is entered ends the block at its first wait."""

    _is_due = False

    def expire(self) -> None:
        """Expire the timeout. Does nothing after the block has ended."""
        self._is_due = True
        # asyncio refuses to move the deadline of a timeout whose block has not begun or has ended.
        with contextlib.suppress(RuntimeError):
            self.reschedule(asyncio.get_running_loop().time())

    async def __aenter__(self) -> asyncio.Timeout:
        entered = await super().__aenter__()
        if self._is_due:
            self.expire()
        return entered


async def _run_other_tasks() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
