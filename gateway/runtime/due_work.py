"""Run work that becomes due at times kept in the store: at start, and whenever the next time has come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

POLL_S = 60.0
"""The longest wait in seconds: bounds the delay after a sleep or a clock change, since timers use another
clock, and after work that a command added to the store from outside."""
_STORE_AGAIN_S = 5.0


class DueWork:
    """Runs due work. `do_due` does some of what is due now, soonest first, so that it is no longer due;
    `next_due` returns the Unix time of the next work, None without any. Both may raise StorageError and are
    then called again. `name` is for logs."""

    def __init__(
        self,
        *,
        do_due: Callable[[], Awaitable[None]],
        next_due: Callable[[], Awaitable[float | None]],
        clock: Clock,
        name: str,
        poll_s: float | None = None,
    ) -> None:
        """`poll_s` is the longest wait, in seconds: shorter where other processes add work too."""
        self._do_due = do_due
        self._next_due = next_due
        self._clock = clock
        self._name = name
        self._poll_s = POLL_S if poll_s is None else poll_s
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Check the next due time again, after work was added."""
        self._changed.set()

    async def run(self) -> None:
        """Do due work, for ever, beginning with what an earlier process left."""
        while True:
            self._changed.clear()
            wait = await self._turn()
            try:
                async with self._clock.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _turn(self) -> float:
        """Do what is due; return the seconds until the next work may be due."""
        try:
            while True:
                await self._do_due()
                next_due = await self._next_due()
                if next_due is None:
                    return self._poll_s
                # Work may have become due during the read: do it without a wait.
                if (wait := next_due - self._clock.now()) > 0:
                    return min(wait, self._poll_s)
        except StorageError:
            _log.exception("due work waits for the store", extra={"work": self._name})
            return _STORE_AGAIN_S
