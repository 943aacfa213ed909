"""A run's log on top of the product's store, as thin as the port allows: one row for each record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.run_rows import to_row
from gateway.storage.ports import Lease, NewRecord, Store
from pipeline.domain.clock import Clock


class StoreRunLog:
    """One run's records under the lease of its thread; `barrier` returns when all of them are durable.

    Records of one step of the event loop go to the store together. A node that waits for anything lets the
    loop go on, so its predecessor's record is on its way before the waiting begins; one that does not wait
    is over before a commit of its own could be.
    """

    def __init__(self, store: Store, lease: Lease, *, session_id: str, message_id: str, clock: Clock) -> None:
        self._store = store
        self._lease = lease
        self._session_id = session_id
        self._message_id = message_id
        self._clock = clock
        self._rows: list[NewRecord] = []
        self._queued: list[asyncio.Future[tuple[int, ...]]] = []

    def append(self, record: Mapping[str, Any]) -> None:
        if not self._rows:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._rows.append(self._row(record))

    async def barrier(self) -> None:
        self._hand_over()
        queued, self._queued = self._queued, []
        for write in queued:
            await write

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._rows += [self._row(record) for record in records]
        await self.barrier()

    def _hand_over(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._queued.append(self._store.append(self._lease, rows))

    def _row(self, record: Mapping[str, Any]) -> NewRecord:
        return NewRecord(
            kind="step",
            session_id=self._session_id,
            message_id=self._message_id,
            body=to_row(record),
            at=self._clock.now(),
        )
