"""Leases: one worker for each thread and one sender for each account, among all processes on one store.

A lease names the owner. Its fence, checked inside every commit, prevents writes by an owner that lost the
lease without noticing (a pause longer than the lease). A turn is written under the lease of its thread, its
replies under that of the account they are sent from: the process that runs a turn need not be the one that
sends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from gateway.storage.ports import Lease, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import FenceLost, StorageError
from pipeline.domain.ids import AccountKey, ThreadKey, new_id

_log = logging.getLogger(__name__)

_HELD_S = 366 * 86_400.0
"""For a lease that ends when another process breaks it. Renewing it would write while nothing happens."""


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

    async def hold(self, key: str) -> Lease | None:
        """The lease until another process starts, without renewals; None while another process has it."""
        return await self._store.acquire_lease(key, self._owner, ttl_s=_HELD_S, now=self._clock.now())

    async def release(self, lease: Lease) -> None:
        """Release a lease."""
        if self._holds(lease):
            del self._held[lease.thread]
        try:
            await self._store.release_lease(lease)
        except StorageError:
            # It expires; until then the same process may acquire it again.
            _log.exception("lease not given back", extra={"thread_key": lease.thread})
            self._not_released(lease)

    def _not_released(self, lease: Lease) -> None:
        """A lease that expires needs nothing more."""

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


class AccountLeases:
    """The leases of the accounts from which this process sends.

    Each is held until another process starts and takes it over, which this one notices when a write is
    refused. An account that was lost stays lost: its new holder has read the replies that wait, and what this
    process sent later would overtake them. The next start reads them again.
    """

    def __init__(self, coordinator: ProcessingCoordinator) -> None:
        self.coordinator = coordinator
        self.shared = False
        """Whether another process may send from the same accounts, and this one not know it for a while."""
        self.held: dict[AccountKey, Lease] = {}
        """The current ones, by account; `of` finds the others."""
        self._lost: set[AccountKey] = set()
        self._taking: dict[AccountKey, asyncio.Lock] = {}

    async def take(self, accounts: Iterable[AccountKey]) -> None:
        """Acquire the leases of `accounts`, in one commit if the store can. Those that another process holds
        are left to it. Raises StorageError."""
        await asyncio.gather(*(self._take(account) for account in accounts))

    async def of(self, thread: ThreadKey) -> Lease:
        """The lease of the account that the thread is on. Raises FenceLost if another process has it, and
        StorageError."""
        lease = self.held.get(thread.account_key) or await self._take(thread.account_key)
        if lease is None:
            raise FenceLost(f"{thread.channel}:{thread.account}: another process sends from this account")
        return lease

    def lost(self, thread: ThreadKey) -> None:
        """Record that a write under the lease of the thread's account was refused."""
        self.held.pop(thread.account_key, None)
        self._lost.add(thread.account_key)

    def check(self, account: AccountKey) -> None:
        """Raise StorageError if another process may send from `account` instead, FenceLost if one does.
        Called right before a platform is."""

    async def _take(self, account: AccountKey) -> Lease | None:
        async with self._taking.setdefault(account, asyncio.Lock()):
            held = self.held.get(account)
            if held is not None or account in self._lost:
                return held
            lease = await self.coordinator.hold(lease_key(account))
            if lease is not None:
                self.held[account] = lease
            return lease


def lease_key(account: AccountKey) -> str:
    """The key of an account's lease: what the keys of all its threads begin with, which are longer."""
    channel, name = account
    return ThreadKey(channel=channel, account=name, chat="x").encode().removesuffix(":x")
