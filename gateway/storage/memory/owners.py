"""The processes that share a MemoryStore: gateways of one test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from gateway.storage.lease import Lease
from gateway.storage.memory.crash_counts import MemoryDeaths
from gateway.storage.memory.rows import ThreadRow
from gateway.storage.owners import KEPT_S, UNTIL_GONE, ListedOwner, Owner


class MemoryOwners:
    """`OwnerBook` in dictionaries."""

    def __init__(
        self, require_open: Callable[[], None], threads: Mapping[str, ThreadRow], deaths: MemoryDeaths
    ) -> None:
        self._require_open = require_open
        self._threads = threads
        self._deaths = deaths
        self._owners: dict[str, tuple[Owner, float]] = {}

    def is_free(self, row: ThreadRow, now: float) -> bool:
        """Whether no process has the lease of the thread."""
        if row.owner is None or row.expires_at <= now:
            return True
        if row.expires_at < UNTIL_GONE / 2:
            return False
        return not self.is_live(row.owner, now)

    def take(self, row: ThreadRow, owner: str, *, until: float, now: float) -> None:
        """Give the thread, which is free, to `owner`. Counts the death of the process that had it."""
        before = row.owner
        if before not in (None, owner) and row.expires_at >= UNTIL_GONE / 2 and not self.is_live(before, now):
            self._deaths.count(lambda key: self._threads[key].owner == before)
        row.fence, row.owner, row.expires_at = row.fence + 1, owner, until

    async def beat(self, owner: Owner, *, ttl_s: float, now: float) -> bool:
        self._require_open()
        unbroken = owner.id not in self._owners or self.is_live(owner.id, now)
        self._owners[owner.id] = owner, now + ttl_s
        for gone in [key for key, (_, until) in self._owners.items() if until < now - KEPT_S]:
            del self._owners[gone]
        return unbroken

    async def retire(self, owner_id: str) -> None:
        self._require_open()
        if owner_id in self._owners:
            self._owners[owner_id] = self._owners[owner_id][0], 0.0

    async def still(self, owner_id: str, keys: Collection[str]) -> frozenset[str]:
        self._require_open()
        return frozenset(key for key in keys if key in self._threads and self._threads[key].owner == owner_id)

    async def claim(self, owner_id: str, *, limit: int, now: float) -> tuple[Lease, ...]:
        self._require_open()
        claimed = []
        for key in self._waiting(now)[:limit]:
            row = self._threads[key]
            self.take(row, owner_id, until=now + UNTIL_GONE, now=now)
            claimed.append(Lease(thread=key, owner=owner_id, fence=row.fence, expires_at=row.expires_at))
        return tuple(claimed)

    async def unowned(self, *, now: float) -> int:
        self._require_open()
        return len(self._waiting(now))

    async def listed(self, *, now: float) -> tuple[ListedOwner, ...]:
        self._require_open()
        held = [row.owner for row in self._threads.values()]
        return tuple(
            ListedOwner(owner=owner, left_s=until - now, threads=held.count(owner.id))
            for owner, until in sorted(self._owners.values(), key=lambda one: (one[0].name, one[0].id))
        )

    def _waiting(self, now: float) -> list[str]:
        waiting = [
            (min(row.unfinished), key)
            for key, row in self._threads.items()
            if row.unfinished and self.is_free(row, now)
        ]
        return [key for _, key in sorted(waiting)]

    def is_live(self, owner_id: str, now: float) -> bool:
        """Whether the process is alive."""
        _, until = self._owners.get(owner_id, (None, 0.0))
        return until > now
