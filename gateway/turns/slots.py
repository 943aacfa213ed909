"""Limit the turns that run at once, and run suspect entries one at a time after the process died."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from gateway.storage.crash_counts import Deaths
from pipeline.domain.clock import Clock

_NONE: Final = Deaths()
ALONE_S: Final = 60.0
"""The longest that other entries wait for one suspect entry, in seconds."""


class Quarantine:
    """Runs entries during which the process has died `limit` times, alone or not; other entries wait.

    A machine that was switched off once is not enough. These entries run one at a time, with no other turn,
    so that the next death is counted against the right one. Those with the fewest deaths alone come first.
    Each has `ALONE_S`; after that, or when it waits for a person, other entries may run too.
    """

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._deaths: dict[int, Deaths] = {}
        self._waiting: dict[int, asyncio.Event] = {}
        """By seq, in order; the event of the first is set."""
        self._empty = asyncio.Event()
        self._empty.set()
        self._disarm: Callable[[], None] = _nothing

    def hold(self, deaths: Mapping[int, Deaths]) -> None:
        """Load the deaths of unfinished entries, before any of them runs."""
        self._deaths = dict(deaths)
        suspects = [seq for seq, known in deaths.items() if known.total >= self._limit]
        self._waiting = {
            seq: asyncio.Event() for seq in sorted(suspects, key=lambda seq: (deaths[seq].alone, seq))
        }
        if self._waiting:
            self._empty.clear()
            self._let_in()

    def hold_more(self, deaths: Mapping[int, Deaths]) -> None:
        """Load the deaths of entries that are about to run here: other processes died with them."""
        self._deaths |= deaths
        was_empty = self.is_empty
        for seq, known in deaths.items():
            if known.total >= self._limit and seq not in self._waiting:
                self._waiting[seq] = asyncio.Event()
                self._empty.clear()
        if was_empty:
            self._let_in()

    def deaths_alone(self, seq: int) -> int:
        """How often the process died while only this entry was running."""
        return self._deaths.get(seq, _NONE).alone

    @property
    def is_empty(self) -> bool:
        """Whether no entry is in quarantine."""
        return not self._waiting

    async def admit(self, seq: int) -> None:
        """Wait until the entry may run."""
        await self._waiting.get(seq, self._empty).wait()

    def end(self, seq: int) -> None:
        """Record that the entry no longer runs. Does nothing for an entry that is not in quarantine."""
        if seq not in self._waiting:
            return
        first = next(iter(self._waiting)) == seq
        self._waiting.pop(seq).set()
        if first:
            self._disarm()
            self._let_in()

    def _let_in(self) -> None:
        """Let the first suspect entry run, or all entries if there is none."""
        if not self._waiting:
            self._empty.set()
            return
        seq, event = next(iter(self._waiting.items()))
        event.set()
        self._disarm = self._clock.call_after(ALONE_S, lambda: self.end(seq))


class Slots(asyncio.Semaphore):
    """The slots at the model, of one process."""

    @property
    def free(self) -> int:
        """How many more turns could run now."""
        return 0 if self.locked() else self._value

    @property
    def waiting(self) -> int:
        """How many turns wait for a slot."""
        return sum(not one.done() for one in self._waiters or ())


class ConcurrencySlot:
    """One turn's slot at the model: the pipeline's `Slot`. `slots` bounds their number.

    `discount` and `count` take back and count the turn's attempt: a turn that waits for a person does not
    run, so it cannot crash the process.
    """

    def __init__(
        self,
        slots: asyncio.Semaphore,
        *,
        leave_quarantine: Callable[[], None],
        discount: Callable[[], Awaitable[None]],
        count: Callable[[], Awaitable[None]],
    ) -> None:
        self._slots = slots
        self._leave_quarantine = leave_quarantine
        self._discount = discount
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
        await self._discount()

    async def resume(self) -> None:
        await self.enter()
        await self._count()


def _nothing() -> None:
    """Cancel nothing: no timer is set."""
