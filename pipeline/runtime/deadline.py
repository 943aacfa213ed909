"""A turn's deadline and concurrency slot. Waiting for a person uses neither; sub-agents use no time of the
turn, as they have their own deadline."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Protocol, Self

from pipeline.domain.clock import Clock
from pipeline.graph.execution.control import Interruption

_EARLY_S = 0.001
"""A timer may be so much early, by rounding."""


class SharedTimer:
    """Calls functions at their times with one timer of the event loop. Most deadlines are taken back long
    before their time, and a timer that is set and cancelled for each costs twenty times as much."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: dict[int, tuple[float, Callable[[], None]]] = {}
        self._number = 0
        self._set_for = math.inf
        self._unset: Callable[[], None] = _nothing

    def call_after(self, seconds: float, callback: Callable[[], None]) -> int:
        """Call `callback` after `seconds`; the number by which `cancel` takes that back."""
        at = self._clock.monotonic() + seconds
        self._number += 1
        self._calls[self._number] = at, callback
        if at < self._set_for:
            self._set(at, seconds)
        return self._number

    def cancel(self, number: int) -> None:
        """Do not call the function of `number`. The timer stays, for those that follow."""
        self._calls.pop(number, None)

    def _set(self, at: float, seconds: float) -> None:
        self._unset()
        self._set_for, self._unset = at, self._clock.call_after(seconds, self._call_due)

    def _call_due(self) -> None:
        self._set_for, self._unset = math.inf, _nothing
        now = self._clock.monotonic() + _EARLY_S
        for number in [number for number, (at, _) in self._calls.items() if at <= now]:
            _, callback = self._calls.pop(number)
            callback()
        if self._calls:
            at = min([at for at, _ in self._calls.values()])
            self._set(at, at - now + _EARLY_S)


class TurnDeadline:
    """A context manager that raises TimeoutError after `seconds` of work. For one turn, used once.

    Overlapping waits count once.
    """

    def __init__(self, timer: SharedTimer, clock: Clock, seconds: float) -> None:
        self._timer = timer
        self._clock = clock
        self._left_s = seconds
        self._over = Interruption(TimeoutError)
        self._began = 0.0
        self._waits = 0
        self._number = 0
        """That of its call by the timer."""

    def __enter__(self) -> Self:
        self._over.__enter__()
        self._arm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._disarm()
        self._over.__exit__(kind, error, trace)

    def expired(self) -> bool:
        """Whether a TimeoutError came from this deadline."""
        return self._over.requested

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The time of this block does not count."""
        self._waits += 1
        if self._waits == 1:
            self._disarm()
            self._left_s -= self._clock.monotonic() - self._began
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0:
                self._arm()

    def _arm(self) -> None:
        self._began = self._clock.monotonic()
        self._number = self._timer.call_after(self._left_s, self._over.request)

    def _disarm(self) -> None:
        self._timer.cancel(self._number)


class Slot(Protocol):
    """A concurrency slot, which a turn occupies while it works. The host bounds their number."""

    async def enter(self) -> None:
        """Wait for a free slot and take it. Does nothing if already taken."""
        ...

    def leave(self) -> None:
        """Release it. Does nothing if not taken."""
        ...

    async def suspend(self) -> None:
        """Release it while the turn waits for a person."""
        ...

    async def resume(self) -> None:
        """Wait for a free slot and take it again after `suspend`."""
        ...


class UnlimitedSlot:
    """A slot for hosts without a limit: it never waits."""

    async def enter(self) -> None:
        """Do nothing: there is no limit."""

    def leave(self) -> None:
        """Do nothing: there is no limit."""

    async def suspend(self) -> None:
        """Do nothing: there is no limit."""

    async def resume(self) -> None:
        """Do nothing: there is no limit."""


class TurnSuspension:
    """Suspends a turn: its deadline is paused, and its slot is free for other turns meanwhile.

    The turn has entered `slot`. Overlapping suspensions, of sub-agents, count once.
    """

    def __init__(self, deadline: TurnDeadline, slot: Slot) -> None:
        self._deadline = deadline
        self._slot = slot
        self._suspensions = 0
        self._released = False

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Suspend the turn for the block. Afterwards wait for a free slot, unless the block is cancelled: a
        turn that ends needs no slot and must not wait for others."""
        with self._deadline.paused():
            self._suspensions += 1
            try:
                if not self._released:
                    self._released = True
                    await self._slot.suspend()
                yield
            except asyncio.CancelledError:
                self._suspensions -= 1
                raise
            except BaseException:
                self._suspensions -= 1
                await self._take_slot()
                raise
            self._suspensions -= 1
            await self._take_slot()

    @asynccontextmanager
    async def delegating(self) -> AsyncIterator[None]:
        """The time of this block does not count. A sub-agent that was cut off while suspended has not taken
        the slot again, so the turn does so itself, unless the block is cancelled."""
        with self._deadline.paused():
            try:
                yield
            except asyncio.CancelledError:
                raise
            except BaseException:
                await self._take_slot()
                raise
            await self._take_slot()

    async def _take_slot(self) -> None:
        if self._released and not self._suspensions:
            self._released = False
            await self._slot.resume()


def _nothing() -> None:
    """No timer is set yet."""
