"""Write a run's log to the store: the engine's `RunLog`, under the lease of a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gateway.runtime.crash_labels import CrashLabels, Label
from gateway.storage.log_records import STEPS
from gateway.storage.ports import Lease, NewRecord, Store
from gateway.turns.run_codec import CUT_OFF, DROPPED, to_embedded, to_rows
from pipeline.graph.run.records import RawRecord, has_ended

_EFFECT_LABELS: Mapping[str, tuple[Label, Label]] = {
    "began": ("effect-begun-before", "effect-begun-after"),
    "done": ("effect-done-before", "effect-done-after"),
}
"""The crash labels before and after the record is durable. Between the inner two the effect runs."""
TOGETHER_S = 0.002
"""For graphs of many short steps, see `StoreRunLog.together_s`."""
OnWritten = Callable[[int], None]
"""Gets the id of a record once it is durable."""
_CHEAP_S = 0.05
"""A first step that took less is not written separately: repeating it costs less than a wait for the disk."""


class StoreRunLog:
    """Writes the records of one turn of the event loop together, as one row.

    A node that awaits anything lets the loop turn, so the record before it is written meanwhile. The last
    records wait for the commit of the outcome. So do the person's words and a cheap first step, unless
    another record comes before: a crash may repeat the step, which has no effect outside.
    """

    verbatim = True
    """What is read back is what was recorded, see `RunRecorder.verbatim`."""
    commits_pauses = True
    """The commit of a question has the records before it, see `RunRecorder.is_committed_later`."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        row: Callable[[Mapping[str, Any]], NewRecord],
        crash_labels: CrashLabels | None = None,
    ) -> None:
        self._store = store
        self._lease = lease
        self._row = row
        self._crash_labels = crash_labels or CrashLabels()
        self._records: list[Mapping[str, Any]] = []
        """The records of this turn of the loop."""
        self._writes: list[asyncio.Future[tuple[int, ...]]] = []
        """In order; successful writes are dropped now and then, a failed one stays."""
        self._words: list[tuple[NewRecord, OnWritten]] = []
        """Records to write before the next row of the run, each with what gets its id."""
        self._words_in_commit: tuple[OnWritten, ...] = ()
        self.left_trace = False
        """Whether more than the first step was recorded: the run cannot begin again."""
        self._has_written = False
        self._last: Sequence[Mapping[str, Any]] = ()
        self._soon: asyncio.TimerHandle | None = None
        """When the records of `together_s` are handed over."""
        self.run_id = ""
        """The id of the run; empty until its first record."""
        self.together_s = 0.0
        """Seconds within which records share a row and a wait for the disk; 0: those of one turn of the event
        loop. A crash repeats the steps of that time."""
        self.earlier: tuple[RawRecord, ...] | None = None
        """The records of the run from before this log; None if they are not known."""
        self.made: list[RawRecord] = []
        """The records that it has got itself."""

    def append(self, record: Mapping[str, Any]) -> None:
        self._note(record)
        self.made.append(record)
        if record["do"] == "effect" and (labels := _labels(record)):
            self._crash_labels.reach(labels[0])
        waiting = len(self._records)
        is_scheduled = waiting > 1 or (waiting == 1 and not _can_wait(self._records))
        self._records.append(record)
        if not is_scheduled and not _can_wait(self._records):
            loop = asyncio.get_running_loop()
            if self.together_s:
                self._soon = loop.call_later(self.together_s, self.hand_over)
            else:
                loop.call_soon(self.hand_over)

    def hold(self, words: Sequence[NewRecord], on_recorded: OnWritten) -> None:
        """Write `words` with the next row of the run, or leave them to the commit. `on_recorded` is called
        with the id of the last of them when they are durable."""
        self._words += [*((record, _ignore) for record in words[:-1]), (words[-1], on_recorded)]

    async def write_held(self) -> None:
        """Write now what `hold` got."""
        held, self._words = self._words, []
        if held:
            written = await self._store.append(self._lease, [record for record, _ in held])
            _report(held, written)

    async def begin_again(self) -> None:
        """Drop a run of which at most the first step was recorded: another one begins. It is durable when
        this returns."""
        self._records, self.made = [], []
        self.run_id = ""
        if self._has_written:
            await self._until_written()
            self._has_written = False
            await self._store.append(self._lease, [self._row(DROPPED)])

    async def barrier(self) -> None:
        self.hand_over()
        await self._until_written()

    async def unwritten(self) -> list[NewRecord]:
        """The rows that the commit of the outcome must write first; then call `committed`. Raises if an
        earlier row could not be written."""
        if any(record["do"] == "effect" and _labels(record) for record in self._records):
            self.hand_over()
        held, self._words = self._words, []
        rows = [record for record, _ in held]
        self._words_in_commit = tuple(notify for _, notify in held)
        if self._records:
            rows.append(self._row(to_rows(self._records)))
            self._records = []
            if self._soon is not None:
                self._soon.cancel()
        await self._until_written()
        return rows

    def committed(self, record_ids: Sequence[int]) -> None:
        """Report the words among the rows of `unwritten`, which have the first of these ids."""
        words, self._words_in_commit = self._words_in_commit, ()
        for notify, record_id in zip(words, record_ids, strict=False):
            notify(record_id)

    async def _until_written(self) -> None:
        """Wait until everything handed over is durable. Raises if anything could not be written."""
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
        self._note_head(records)
        self.made += records
        self._last = records

    def last_rows(self, *, cut_off: bool = False) -> list[NewRecord]:
        """The last records as a separate row, for a run that ends in another message's turn. `cut_off`: the
        turn ends without an answer, and so does a run that has no end yet."""
        rows = [self._row(to_rows(self._last))] if self._last else []
        return [*rows, self._row(CUT_OFF)] if cut_off and not has_ended(self._last) else rows

    def embedded_records(self) -> dict[str, Any]:
        """What to add to the body of the record that shows the run's outcome; empty for most."""
        return {STEPS: rows} if (rows := to_embedded(self._last)) else {}

    def hand_over(self) -> None:
        """Queue the records that wait, and the words before them."""
        if self._records:
            self._has_written = True
            self._drop_written()
            records, self._records = self._records, []
            words, self._words = self._words, []
            rows = [*(record for record, _ in words), self._row(to_rows(records))]
            write = self._store.append(self._lease, rows)
            self._writes.append(write)
            if words:
                write.add_done_callback(partial(_words_written, words))
            for record in records:
                if record["do"] == "effect" and (labels := _labels(record)):
                    write.add_done_callback(partial(self._reach_written, labels[1]))

    def _drop_written(self) -> None:
        self._writes = [write for write in self._writes if not _written(write)]

    def _reach_written(self, label: Label, write: asyncio.Future[tuple[int, ...]]) -> None:
        if _written(write):
            self._crash_labels.reach(label)

    def _note_head(self, records: Sequence[Mapping[str, Any]]) -> None:
        if records and "head" in records[0]:
            self.run_id, self.earlier = records[0]["head"]["run"], ()

    def _note(self, record: Mapping[str, Any]) -> None:
        if "head" in record:
            self.run_id, self.earlier = record["head"]["run"], ()
        if record["do"] != "step" or "head" not in record:
            self.left_trace = True


class UnwrittenRunLog(StoreRunLog):
    """The log of a run off the record: it writes nothing."""

    verbatim = False

    def append(self, record: Mapping[str, Any]) -> None:
        self._note(record)

    async def finish(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._note_head(records)


def _can_wait(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the records are the first step of a run alone, and a cheap one."""
    first = records[0]
    cheap = first["do"] == "step" and first.get("seconds", 0.0) < _CHEAP_S
    return len(records) == 1 and "head" in first and cheap


def _labels(record: Mapping[str, Any]) -> tuple[Label, Label] | None:
    """The crash labels before and after the record is durable; None for most records."""
    return _EFFECT_LABELS.get(record["state"]) if record.get("do") == "effect" else None


def _ignore(_record_id: int) -> None:
    """Ignore the id of a record that nothing shows."""


def _report(held: Sequence[tuple[NewRecord, OnWritten]], ids: Sequence[int]) -> None:
    for (_, notify), record_id in zip(held, ids, strict=False):
        notify(record_id)


def _words_written(
    held: Sequence[tuple[NewRecord, OnWritten]], write: asyncio.Future[tuple[int, ...]]
) -> None:
    if _written(write):
        _report(held, write.result())


def _written(write: asyncio.Future[tuple[int, ...]]) -> bool:
    return write.done() and not write.cancelled() and write.exception() is None
