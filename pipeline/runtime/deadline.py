"""A turn's time and place, neither of which it uses up while it waits for a person; nor its time while
sub-agents work, who have a limit of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Protocol, Self

from pipeline.domain.clock import Clock


class TurnDeadline:
    """`async with` it: TimeoutError comes after `seconds` of work. For one turn, once.

    Waits that overlap count once.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._left_s = seconds
        self._timeout = asyncio.timeout(None)
        self._began = 0.0
        self._waits = 0
        self._disarm: Callable[[], None] = _nothing

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._arm()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._disarm()
        await self._timeout.__aexit__(kind, error, trace)

    def expired(self) -> bool:
        """Whether a TimeoutError is this deadline's."""
        return self._timeout.expired()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
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
        self._disarm = self._clock.call_after(self._left_s, self._expire)

    def _expire(self) -> None:
        if not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())


class Slot(Protocol):
    """What a turn takes up while it works: one of the places that the host has."""

    async def enter(self) -> None:
        """Take it, when there is some. Does nothing where it is taken already."""
        ...

    def leave(self) -> None:
        """Give it back. Does nothing where it is not taken."""
        ...

    async def step_aside(self) -> None:
        """Give it back for as long as a person is waited for."""
        ...

    async def come_back(self) -> None:
        """Take it again after `step_aside`, when there is some."""
        ...


class UnlimitedSlot:
    """Room without bounds."""

    async def enter(self) -> None:
        """There is always some."""

    def leave(self) -> None:
        """Nobody waits for it."""

    async def step_aside(self) -> None:
        """Nobody waits for it."""

    async def come_back(self) -> None:
        """There is always some."""


class TurnSuspension:
    """Lets a turn step aside: its deadline stands still, and its room is left to others meanwhile.

    `room` is one that the turn has entered. Absences that overlap, of sub-agents, count once.
    """

    def __init__(self, deadline: TurnDeadline, room: Slot) -> None:
        self._deadline = deadline
        self._room = room
        self._absent = 0
        self._away = False

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Be away for as long as the block takes; coming back waits for room, unless the block is cancelled:
        what ends needs none, and must not wait for others."""
        with self._deadline.standing_still():
            self._absent += 1
            try:
                if not self._away:
                    self._away = True
                    await self._room.step_aside()
                yield
            except asyncio.CancelledError:
                self._absent -= 1
                raise
            except BaseException:
                self._absent -= 1
                await self._come_back()
                raise
            self._absent -= 1
            await self._come_back()

    @asynccontextmanager
    async def delegating(self) -> AsyncIterator[None]:
        """The time of this block does not count. A sub-agent that was cut off while it was away has not come
        back, so the turn does so itself, unless the block is cancelled."""
        with self._deadline.standing_still():
            try:
                yield
            except asyncio.CancelledError:
                raise
            except BaseException:
                await self._come_back()
                raise
            await self._come_back()

    async def _come_back(self) -> None:
        if self._away and not self._absent:
            self._away = False
            await self._room.come_back()


def _nothing() -> None:
    """There is no alarm yet."""
