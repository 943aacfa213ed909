"""A store whose writes are not confirmed once it has been set to hold them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease, NewRecord


class HeldStore(MemoryStore):
    """Writes at once and does not confirm it, once it has `held`."""

    held: asyncio.Event | None = None

    def append(
        self, lease: Lease, records: Sequence[NewRecord], *, attempt: int | None = None
    ) -> asyncio.Future[tuple[int, ...]]:
        written = super().append(lease, records, attempt=attempt)
        if self.held is None:
            return written
        self.held.set()
        return asyncio.get_running_loop().create_future()
