"""Where a run's records and events go: into the run itself, then to the log, then to whoever listens."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from pipeline.graph.definition.ports import RunLog
from pipeline.graph.run.apply import advance, apply
from pipeline.graph.run.events import BranchesJoined, Checkpointed, CheckpointKind, GraphEvent, Listener
from pipeline.graph.run.frames import Frame
from pipeline.graph.run.records import SHOWN_SECONDS, Head, Record
from pipeline.graph.run.snapshots import dump
from pipeline.graph.run.state import Run

FIRST_SNAPSHOT = 64
"""Records before the first snapshot. Each further one comes after twice as many, so that all of them
together weigh about as much as the records that they save reading."""


class RunRecorder:
    """One call's way to the outside."""

    def __init__(
        self,
        run: Run,
        head: Head,
        log: RunLog | None,
        listener: Listener | None,
        first_snapshot: int = FIRST_SNAPSHOT,
    ) -> None:
        self._run = run
        self._head: Head | None = head if run.records == 0 else None
        self._log = log
        self.listener = listener
        self.marks: list[Checkpointed] = []
        """Checkpoints that the listener has not been told of."""
        self._last: list[Record] = []
        self._failure: Exception | None = None
        """What the log raised."""
        self._refusal: Exception | None = None
        """What the listener raised."""
        self.finished = False
        """The log has taken the end of the run."""
        self._snapshot_at = first_snapshot
        while self._snapshot_at <= run.records:
            self._snapshot_at *= 2

    async def emit(self, event: GraphEvent) -> None:
        """Tell the listener."""
        if self.listener is not None:
            try:
                await self.listener(event)
            except Exception as error:
                self._refusal = error
                raise

    async def record(self, record: Record, *, kind: CheckpointKind, label: str) -> None:
        """As `write`, and tell of it."""
        self.write(record, kind, label)
        await self.tell_marks()

    def write(
        self, record: Record, kind: CheckpointKind, label: str, values: Mapping[str, Any] | None = None
    ) -> None:
        """Apply the record and hand it to the log.

        The records that bring the run to its end are kept for `finish`, so that a log can make them part
        of the commit that the outcome leads to.
        """
        self.raise_failure()
        apply(self._run, record, values)
        if self._log is None:
            return
        if self._head is not None:
            record["head"], self._head = self._head, None
        if self._run.root.at_rest:
            self._last.append(record)
        else:
            self._append(record)
        if self.listener is not None:
            self.marks.append(Checkpointed(kind, label))
        if self._run.records >= self._snapshot_at and not self._run.root.at_rest:
            self._snapshot_at *= 2
            self.write({"do": "snapshot", "run": dump(self._run)}, "snapshot", "")

    def write_ordinary(
        self, frame: Frame, update: Mapping[str, Any], target: str, values: Mapping[str, Any], seconds: float
    ) -> None:
        """As `write`, for an ordinary step; without a log there is no record to make."""
        seconds = round(seconds, 4) if seconds >= SHOWN_SECONDS else 0.0
        if self._log is None and self._failure is None and self._refusal is None:
            advance(self._run, frame, update, target, values, seconds)
            return
        record: Record = {"do": "step", "node": frame.node}
        if frame.id:
            record["frame"] = frame.id
        if update:
            record["update"] = update
        record["to"] = (target,)
        if seconds:
            record["seconds"] = seconds
        self.write(record, "node_complete", frame.label, values)

    async def tell_marks(self) -> None:
        """Tell of the checkpoints written since."""
        while self.marks:
            await self.emit(self.marks.pop(0))

    async def barrier(self) -> None:
        """Return when every record is durable."""
        self.raise_failure()
        if self._log is not None:
            try:
                await self._log.barrier()
            except Exception as error:
                self._failure = error
                raise

    async def finish(self, record: Record) -> None:
        """The run is over: its last records."""
        self.raise_failure()
        apply(self._run, record)
        if self._log is None:
            return
        if self._head is not None:
            record["head"], self._head = self._head, None
        last, self._last = self._last, []
        try:
            await self._log.finish([*last, record])
        except Exception as error:
            self._failure = error
            raise
        self.finished = True
        await self.emit(Checkpointed("end", ""))

    def cut_off(self, kept: Mapping[str, Any]) -> None:
        """The call ends by an error or a cancellation, which nothing may replace: queue what is not on
        record yet, and await nothing.

        Without `kept` the run ends where its records end, and needs none of its own for that.
        """
        with contextlib.suppress(Exception):
            if self._log is not None and self._failure is None:
                last, self._last = self._last, []
                for record in last:
                    self._append(record)
            if kept:
                self.write({"do": "cancel", "kept": kept}, "cancel", "")

    async def tell_joins(self, run: Run) -> None:
        """Tell of the fan-outs that the last record brought to their end."""
        if run.joined:
            joined, run.joined = run.joined, []
            for join in joined:
                await self.emit(BranchesJoined(join.source, join.join, join.finished, join.failed))

    def raise_failure(self) -> None:
        """Raise what the log or the listener raised, so that nobody takes it for a node's own failure."""
        failure = self._failure or self._refusal
        if failure is not None:
            raise failure

    def _append(self, record: Record) -> None:
        assert self._log is not None  # noqa: S101 - for the type checker
        try:
            self._log.append(record)
        except Exception as error:
            self._failure = error
            raise
