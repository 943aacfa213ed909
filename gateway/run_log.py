"""A run's log on the store: the engine's `RunLog`, under the lease of a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.run_rows import RIDING, to_riding, to_row
from gateway.storage.ports import Lease, NewRecord, Store


class StoreRunLog:
    """Queues one row for each record. The last records wait for the commit that the outcome leads to."""

    def __init__(self, store: Store, lease: Lease, row: Callable[[Mapping[str, Any]], NewRecord]) -> None:
        self._store = store
        self._lease = lease
        self._row = row
        self._queued: list[asyncio.Future[tuple[int, ...]]] = []
        self._last: Sequence[Mapping[str, Any]] = ()
        self.run_id = ""
        """The run that is being recorded, once it has a record."""

    def append(self, record: Mapping[str, Any]) -> None:
        self._note_run(record)
        self._queued.append(self._store.append(self._lease, [self._row(to_row(record))]))

    async def barrier(self) -> None:
        if not self._queued:
            return
        # Not `gather`: a turn that is cut off here must not cancel the writes.
        await asyncio.wait(self._queued)
        for write in self._queued:
            write.result()
        self._queued.clear()

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            self._note_run(record)
        self._last = records

    def last_rows(self) -> list[dict[str, Any]]:
        """The last records as rows of their own, for a run that ends in another message's turn."""
        return [to_row(record) for record in self._last]

    def riding(self) -> dict[str, Any]:
        """What the body of the record that shows the run's outcome holds besides; empty for most."""
        return {RIDING: riding} if (riding := to_riding(self._last)) else {}

    def _note_run(self, record: Mapping[str, Any]) -> None:
        if "head" in record:
            self.run_id = record["head"]["run"]
