"""A turn's time and place, neither of which it uses up while it waits for a person; nor its time while
sub-agents work, who have a limit of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Self

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


class Absence:
    """Lets a turn step aside: its deadline stands still, and its room is left to others meanwhile.

    `room` is one that the turn has entered, and that may be left twice. Absences that overlap, of
    sub-agents, count once.
    """

    def __init__(self, deadline: TurnDeadline, room: AbstractAsyncContextManager[object]) -> None:
        self._deadline = deadline
        self._room = room
        self._absent = 0

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Be away for as long as the block takes; coming back waits for room, unless it is cancelled: what
        ends needs none, and must not wait for others. The room's own exit has to bear that."""
        with self._deadline.standing_still():
            self._absent += 1
            if self._absent == 1:
                await self._room.__aexit__(None, None, None)
            cut_off = False
            try:
                yield
            except asyncio.CancelledError:
                cut_off = True
                raise
            finally:
                self._absent -= 1
                if self._absent == 0 and not cut_off:
                    await self._room.__aenter__()


def _nothing() -> None:
    """There is no alarm yet."""
