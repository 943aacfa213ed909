"""Write a run's log to the store: the engine's `RunLog`, under the lease of a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gateway.runtime.failpoints import Failpoints, Label
from gateway.storage.ports import Lease, NewRecord, Store
from gateway.turns.run_codec import EMBEDDED, to_embedded, to_row, to_rows

_EFFECT_LABELS: Mapping[str, tuple[Label, Label]] = {
    "began": ("effect-begun-before", "effect-begun-after"),
    "done": ("effect-done-before", "effect-done-after"),
}
"""The failpoints before and after the record is durable. Between the inner two the effect runs."""


class StoreRunLog:
    """Writes the records of one turn of the event loop together, as one row.

    A node that awaits anything lets the loop turn, so the record before it is written meanwhile. The last
    records wait for the commit of the outcome.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        row: Callable[[Mapping[str, Any]], NewRecord],
        failpoints: Failpoints | None = None,
    ) -> None:
        self._store = store
        self._lease = lease
        self._row = row
        self._failpoints = failpoints or Failpoints()
        self._records: list[Mapping[str, Any]] = []
        """The records of this turn of the loop."""
        self._writes: list[asyncio.Future[tuple[int, ...]]] = []
        """In order; successful writes are dropped now and then, a failed one stays."""
        self._last: Sequence[Mapping[str, Any]] = ()
        self.run_id = ""
        """The id of the run; empty until its first record."""

    def append(self, record: Mapping[str, Any]) -> None:
        self._note_run(record)
        if labels := _labels(record):
            self._failpoints.reach(labels[0])
        if not self._records:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._records.append(record)

    async def barrier(self) -> None:
        self._hand_over()
        self._drop_written()
        if not self._writes:
            return
        # A copy, because branches append and wait at the same time. Not `gather`: cancelling a turn here
        # must not cancel the writes.
        writes = tuple(self._writes)
        await asyncio.wait(writes)
        for write in writes:
            write.result()

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            self._note_run(record)
        self._last = records

    async def write_last(self) -> None:
        """Make all records durable, the last ones in separate rows: for a run without a commit."""
        self._records += self._last
        self._last = ()
        await self.barrier()

    def last_rows(self) -> list[dict[str, Any]]:
        """The last records as separate rows, for a run that ends in another message's turn."""
        self._hand_over()  # so that they follow all earlier records
        return [to_row(record) for record in self._last]

    def embedded_records(self) -> dict[str, Any]:
        """What to add to the body of the record that shows the run's outcome; empty for most."""
        self._hand_over()
        return {EMBEDDED: rows} if (rows := to_embedded(self._last)) else {}

    def _hand_over(self) -> None:
        if self._records:
            self._drop_written()
            records, self._records = self._records, []
            write = self._store.append(self._lease, [self._row(to_rows(records))])
            self._writes.append(write)
            for record in records:
                if labels := _labels(record):
                    write.add_done_callback(partial(self._reach_written, labels[1]))

    def _drop_written(self) -> None:
        self._writes = [write for write in self._writes if not _written(write)]

    def _reach_written(self, label: Label, write: asyncio.Future[tuple[int, ...]]) -> None:
        if _written(write):
            self._failpoints.reach(label)

    def _note_run(self, record: Mapping[str, Any]) -> None:
        if "head" in record:
            self.run_id = record["head"]["run"]


class UnwrittenRunLog(StoreRunLog):
    """The log of a run off the record: it writes nothing."""

    def append(self, record: Mapping[str, Any]) -> None:
        self._note_run(record)

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            self._note_run(record)


def _labels(record: Mapping[str, Any]) -> tuple[Label, Label] | None:
    """The failpoints before and after the record is durable; None for most records."""
    return _EFFECT_LABELS.get(record["state"]) if record.get("do") == "effect" else None


def _written(write: asyncio.Future[tuple[int, ...]]) -> bool:
    return write.done() and not write.cancelled() and write.exception() is None
