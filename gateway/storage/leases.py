"""ProcessingCoordinator: one worker per thread, across all processes that share a store.

A lease names the worker of a thread. Its fence, checked inside every commit, prevents writes by an owner
that lost the lease without noticing (a pause longer than the lease).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from gateway.storage.ports import Lease, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import FenceLost, StorageError
from pipeline.domain.ids import new_id

_log = logging.getLogger(__name__)


class ProcessingCoordinator:
    """Acquires, renews and releases the leases of one process."""

    def __init__(self, store: Store, clock: Clock, *, lease_s: float) -> None:
        self._store = store
        self._clock = clock
        self._lease_s = lease_s
        self._owner = new_id("own")
        self._held: dict[str, tuple[Lease, Callable[[], None]]] = {}

    @property
    def owner(self) -> str:
        """The name under which this process holds its leases."""
        return self._owner

    async def acquire(self, thread: str, on_lost: Callable[[], None]) -> Lease | None:
        """The thread's lease, or None while another process has it. `on_lost` is called if a renewal finds
        that the lease is lost."""
        lease = await self._store.acquire_lease(
            thread, self._owner, ttl_s=self._lease_s, now=self._clock.now()
        )
        if lease is not None:
            self._held[thread] = (lease, on_lost)
        return lease

    async def release(self, lease: Lease) -> None:
        """Release a lease."""
        if self._holds(lease):
            del self._held[lease.thread]
        try:
            await self._store.release_lease(lease)
        except StorageError:
            # It expires; until then the same process may acquire it again.
            _log.exception("lease not given back", extra={"thread_key": lease.thread})

    async def keep_renewing(self) -> None:
        """Renew everything held, three times per lease time, until cancelled."""
        while True:
            await self._clock.sleep(self._lease_s / 3)
            # Concurrently, so that one commit serves them all.
            await asyncio.gather(
                *(self._renew(thread, lease, on_lost) for thread, (lease, on_lost) in self._held.items())
            )

    async def _renew(self, thread: str, lease: Lease, on_lost: Callable[[], None]) -> None:
        try:
            await self._store.renew_lease(lease, ttl_s=self._lease_s, now=self._clock.now())
        except FenceLost:
            if not self._holds(lease):
                # Released during the renewal.
                return
            _log.warning("lease lost", extra={"thread_key": thread})
            self._held.pop(thread, None)
            on_lost()
        except StorageError:
            # The store may work again before the lease expires; otherwise the fence prevents writes.
            _log.exception("lease not renewed", extra={"thread_key": thread})

    def _holds(self, lease: Lease) -> bool:
        held = self._held.get(lease.thread)
        return held is not None and held[0] is lease
