"""Doing what becomes due at times that the store keeps: at once, and again when the next time has come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 60.0
"""A machine that slept, or whose clock was set, is at most so late: timers run on another clock."""
_STORE_AGAIN_S = 5.0


class DueWork:
    """`do_due` does some of what is due now, soonest first, so that it is not due any more; `next_due` tells
    the Unix time of what comes next, None without any. Both may raise StorageError: they are called again
    then. `name` is for logs."""

    def __init__(
        self,
        *,
        do_due: Callable[[], Awaitable[None]],
        next_due: Callable[[], Awaitable[float | None]],
        clock: Clock,
        name: str,
    ) -> None:
        self._do_due = do_due
        self._next_due = next_due
        self._clock = clock
        self._name = name
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Something was added, which may be due before everything else."""
        self._changed.set()

    async def run(self) -> None:
        """Do what becomes due, for ever; first what an earlier process left."""
        while True:
            self._changed.clear()
            wait = await self._turn()
            try:
                async with self._clock.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _turn(self) -> float | None:
        """Do what is due; seconds until there may be more, None when only something new can be."""
        try:
            while True:
                await self._do_due()
                next_due = await self._next_due()
                if next_due is None:
                    return None
                # What has become due while the store was looking is not waited for.
                if (wait := next_due - self._clock.now()) > 0:
                    return min(wait, _LOOK_AGAIN_S)
        except StorageError:
            _log.exception("due work waits for the store", extra={"work": self._name})
            return _STORE_AGAIN_S
