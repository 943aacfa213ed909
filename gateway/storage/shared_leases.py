"""Leases of a process that shares its store with others: they hold as long as the process reports to it.

One report serves all leases. Where a process could not report in time, others may take its threads, each
with a higher fence, so that what the process writes to them afterwards is refused. At its next report it
learns from the store what it has left. Until then it does nothing that cannot be refused: it calls no
platform (`is_current`), and claims nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from gateway.storage.crash_counts import Deaths
from gateway.storage.lease import Lease
from gateway.storage.leases import AccountLeases, ProcessingCoordinator, lease_key
from gateway.storage.owners import UNTIL_GONE, Owner, OwnerBook, SharedStore
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import FenceLost, StorageError
from pipeline.domain.ids import AccountKey, ThreadKey

_log = logging.getLogger(__name__)


class SharedCoordinator(ProcessingCoordinator):
    """Acquires and releases the leases of one process among several, and reports that it is alive."""

    def __init__(
        self,
        store: Store,
        owners: OwnerBook,
        clock: Clock,
        *,
        name: str,
        role: str,
        version: str,
        beat_s: float,
        ttl_s: float,
    ) -> None:
        super().__init__(store, clock, lease_s=UNTIL_GONE)
        self._owners = owners
        self._names = name, role, version
        self._beat_s = beat_s
        self._ttl_s = ttl_s
        self.accounts: Callable[[], Collection[str]] = tuple
        """The accounts that the process sends from, for the operator."""
        self.reported_at: float | None = None
        """Monotonic time at which the last report that was stored began."""
        self._unreleased: dict[str, Lease] = {}
        """What could not be given back: it lasts as long as this process reports, though nothing uses it."""
        self._waits_until = 0.0
        """Monotonic time before which nothing is claimed: after an outage of the store others report too."""

    @property
    def is_current(self) -> bool:
        """Whether no other process can have taken a lease of this one: the last report is young."""
        if self.reported_at is None:
            return False
        return self._clock.monotonic() - self.reported_at < self._ttl_s / 2

    async def report(self) -> None:
        """Report once that the process is alive, and find out what was lost if it was late. Raises
        StorageError."""
        name, role, version = self._names
        owner = Owner(
            id=self.owner, name=name, role=role, version=version, accounts=tuple(sorted(self.accounts()))
        )
        began = self._clock.monotonic()
        unbroken = await self._owners.beat(owner, ttl_s=self._ttl_s, now=self._clock.now())
        if not unbroken:
            _log.warning("the others took this process for gone", extra={"reason": "its report was late"})
            self._waits_until = began + self._ttl_s
            await self._find_lost()
        self.reported_at = began
        await self._release_again()

    def _not_released(self, lease: Lease) -> None:
        self._unreleased[lease.thread] = lease

    async def _release_again(self) -> None:
        """Give back what the store did not take, unless it was acquired again."""
        while self._unreleased:
            _, lease = self._unreleased.popitem()
            if lease.thread not in self._held:
                await self.release(lease)
            if lease.thread in self._unreleased:
                return  # the store is away again

    async def keep_renewing(self) -> None:
        """Report until cancelled."""
        while True:
            await self._clock.sleep(self._beat_s)
            try:
                await self.report()
            except StorageError as error:
                _log.warning("the store took no report", extra={"reason": str(error)})

    async def claim(self, limit: int) -> tuple[Lease, ...]:
        """Take at most `limit` threads that have work and no live owner. Raises StorageError."""
        if not self.is_current or self._clock.monotonic() < self._waits_until:
            return ()
        return await self._owners.claim(self.owner, limit=limit, now=self._clock.now())

    def adopt(self, lease: Lease, on_lost: Callable[[], None]) -> None:
        """Hold a claimed lease as one that was acquired."""
        self._held[lease.thread] = (lease, on_lost)

    async def deaths(self, seq: int) -> Mapping[int, Deaths]:
        """The deaths of the processes that worked on an entry, by its seq. Raises StorageError."""
        store: object = self._store
        return await store.deaths.of((seq,)) if isinstance(store, SharedStore) else {}

    async def unowned(self) -> int:
        """How many threads wait for a process. Raises StorageError."""
        return await self._owners.unowned(now=self._clock.now())

    async def retire(self) -> None:
        """Give every lease to the others at once: the process ends."""
        self.reported_at = None
        try:
            await self._owners.retire(self.owner)
        except StorageError as error:
            # They are free when the last report has expired.
            _log.warning("the leases were not given back", extra={"reason": str(error)})

    async def _find_lost(self) -> None:
        held = dict(self._held)
        still = await self._owners.still(self.owner, held.keys())
        lost = {key: one for key, one in held.items() if key not in still and self._held.get(key) is one}
        for key, (_, on_lost) in lost.items():
            _log.warning("lease lost", extra={"thread_key": key})
            del self._held[key]
            on_lost()
        # Each of them may start something.
        await asyncio.sleep(0)


class SharedAccounts(AccountLeases):
    """The accounts from which this process sends, among several that may. Each is acquired before its channel
    runs, and given up when that ends; one that was lost may be acquired again."""

    def __init__(self, coordinator: SharedCoordinator) -> None:
        super().__init__(coordinator)
        self.coordinator: SharedCoordinator = coordinator
        self.shared = True
        coordinator.accounts = lambda: [f"{channel}:{name}" for channel, name in self.held]

    async def take(self, accounts: Iterable[AccountKey]) -> None:
        """Acquire nothing: each channel acquires its own account."""

    async def take_one(self, account: AccountKey, on_lost: Callable[[], None]) -> bool:
        """Acquire the lease of `account`; False while another process has it. Raises StorageError."""

        def forget() -> None:
            self.held.pop(account, None)
            on_lost()

        lease = await self.coordinator.acquire(lease_key(account), forget)
        if lease is None:
            return False
        self.held[account] = lease
        return True

    async def give_up(self, account: AccountKey) -> None:
        """Release the lease of `account`, if it is still held."""
        lease = self.held.pop(account, None)
        if lease is not None:
            await self.coordinator.release(lease)

    async def of(self, thread: ThreadKey) -> Lease:
        """The lease of the account that the thread is on. Raises FenceLost if another process has it."""
        lease = self.held.get(thread.account_key)
        if lease is None:
            raise FenceLost(
                f"{thread.channel}:{thread.account}: this process does not send from this account"
            )
        return lease

    def lost(self, thread: ThreadKey) -> None:
        """Do nothing: what was lost is found out at the next report."""

    def check(self, account: AccountKey) -> None:
        """See `AccountLeases.check`."""
        if not self.coordinator.is_current:
            raise StorageError("this process could not report that it is alive; another one may send instead")
        if account not in self.held:
            raise FenceLost(f"{':'.join(account)}: this process does not send from this account")
