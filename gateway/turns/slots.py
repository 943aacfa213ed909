"""Places at the model, and the entries that are taken up one at a time after deaths of the process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from gateway.storage.deaths import Deaths
from pipeline.domain.clock import Clock

ALONE_S: Final = 60.0
"""How long everybody else waits for one such entry at most."""


class Quarantine:
    """Entries at which the process has died `limit` times, alone or not, for which the others wait.

    A machine that was switched off once is no reason. They are taken up one at a time, with no other turn at
    work, so that the next death is counted against the one that was. Those that died alone most seldom come
    first. Each has `ALONE_S`; after that, or when it waits for a person, it is an entry like any other.
    """

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._deaths: Mapping[int, Deaths] = {}
        self._waiting: dict[int, asyncio.Event] = {}
        """In their order; the event of the first is set."""
        self._empty = asyncio.Event()
        self._empty.set()
        self._disarm: Callable[[], None] = _nothing

    def hold(self, deaths: Mapping[int, Deaths]) -> None:
        """Take over what is known of unfinished entries, before any of them is taken up."""
        self._deaths = deaths
        suspects = [seq for seq, known in deaths.items() if known.total >= self._limit]
        self._waiting = {
            seq: asyncio.Event() for seq in sorted(suspects, key=lambda seq: (deaths[seq].alone, seq))
        }
        if self._waiting:
            self._empty.clear()
            self._let_in()

    def deaths_alone(self, seq: int) -> int:
        """How often the process died while nothing but this entry was at work."""
        return self._deaths.get(seq, Deaths()).alone

    async def admit(self, seq: int) -> None:
        """Wait until the entry may be worked on."""
        await self._waiting.get(seq, self._empty).wait()

    def end(self, seq: int) -> None:
        """The entry is not at work any more. Does nothing for one that others do not wait for."""
        if seq not in self._waiting:
            return
        first = next(iter(self._waiting)) == seq
        self._waiting.pop(seq).set()
        if first:
            self._disarm()
            self._let_in()

    def _let_in(self) -> None:
        """Let the first one in, or everybody."""
        if not self._waiting:
            self._empty.set()
            return
        seq, event = next(iter(self._waiting.items()))
        event.set()
        self._disarm = self._clock.call_after(ALONE_S, lambda: self.end(seq))


class ConcurrencySlot:
    """One turn's place at the model; the pipeline's `Slot`. Of a number that `slots` bounds.

    `excuse` and `count` take back and count the turn's attempt: one that waits for a person is not at work,
    and the process does not die of it.
    """

    def __init__(
        self,
        slots: asyncio.Semaphore,
        *,
        leave_quarantine: Callable[[], None],
        excuse: Callable[[], Awaitable[None]],
        count: Callable[[], Awaitable[None]],
    ) -> None:
        self._slots = slots
        self._leave_quarantine = leave_quarantine
        self._excuse = excuse
        self._count = count
        self._taken = False

    async def enter(self) -> None:
        if not self._taken:
            await self._slots.acquire()
            self._taken = True

    def leave(self) -> None:
        if self._taken:
            self._taken = False
            self._slots.release()

    async def suspend(self) -> None:
        self.leave()
        self._leave_quarantine()
        await self._excuse()

    async def resume(self) -> None:
        await self.enter()
        await self._count()


def _nothing() -> None:
    """No alarm is set."""
