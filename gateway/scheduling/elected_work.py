"""Work that one process does for all of those that share a store: the elected one, which holds a lease.

The others try to get the lease every second. When the elected process is gone, or has lost the lease, another
one begins the work from what the store has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn, Protocol

from gateway.storage.copies import LOOK_S
from gateway.storage.lease import Lease
from pipeline.domain.background import Spawn
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

ELECTED: Final = "elected"
"""The key of the lease. No thread has it, since theirs name a channel and an account."""


class Leases(Protocol):
    """Acquires and releases the leases of this process."""

    async def acquire(self, thread: str, on_lost: Callable[[], None]) -> Lease | None: ...

    async def release(self, lease: Lease) -> None: ...


class Once(Protocol):
    """Runs work in one process of those that share a store."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, None]], *, name: str) -> None: ...


class ElectedWork:
    """Name the work by `add`, and run `run` as a supervised task."""

    def __init__(self, leases: Leases, clock: Clock, spawn: Spawn) -> None:
        self._leases = leases
        self._clock = clock
        self._spawn = spawn
        self._work: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = []
        self.lease: Lease | None = None
        """The lease, while this process is the elected one."""

    def add(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `work` while this process is elected. It is cancelled when that ends, and may begin again."""
        self._work.append((name, work))

    async def run(self) -> NoReturn:
        """Do the work whenever this process is elected, for ever."""
        while True:
            lost = asyncio.Event()
            try:
                self.lease = await self._leases.acquire(ELECTED, lost.set)
            except StorageError as error:
                _log.warning("no process can be elected", extra={"reason": str(error)})
            if self.lease is not None:
                await self._do(self.lease, lost)
            await self._clock.sleep(LOOK_S)

    async def _do(self, lease: Lease, lost: asyncio.Event) -> None:
        """Do the work until the lease is lost."""
        _log.info("this process is elected", extra={"fence": lease.fence})
        tasks = [self._spawn(work(), name=name) for name, work in self._work]
        try:
            await lost.wait()
        finally:
            self.lease = None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._leases.release(lease)
