"""Apply each record to the run, hand it to the log, then notify the listener."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from pipeline.graph.definition.ports import RunLog
from pipeline.graph.run.apply import advance, apply
from pipeline.graph.run.events import BranchesJoined, Checkpointed, CheckpointKind, GraphEvent, Listener
from pipeline.graph.run.frames import AT_REST, Frame
from pipeline.graph.run.records import SHOWN_SECONDS, Head, RunRecord
from pipeline.graph.run.snapshots import dump
from pipeline.graph.run.state import Run

FIRST_SNAPSHOT = 64
"""Records before the first snapshot. Each further one comes after twice as many, so that together they
take about as much space as the records that need not be read."""


class RunRecorder:
    """Records and reports one `run` or `resume` call."""

    def __init__(
        self,
        run: Run,
        head: Head,
        log: RunLog | None,
        listener: Listener | None,
        first_snapshot: int = FIRST_SNAPSHOT,
        *,
        details: bool = True,
        nodes: Callable[[], bool] | None = None,
    ) -> None:
        self._run = run
        self._head: Head | None = head if run.records == 0 else None
        self._log = log
        self.listener = listener
        self.wants_details = details and listener is not None
        """The listener also receives the events of edges, joins, gates, retries and records."""
        self.wants_nodes = nodes
        """Says whether the listener receives the events of nodes now; None if it always does."""
        self.marks: list[Checkpointed] = []
        """Checkpoints that the listener has not received yet."""
        self._last: list[RunRecord] = []
        self._failure: Exception | None = None
        """The exception of the log."""
        self._refusal: Exception | None = None
        """The exception of the listener."""
        self.finished = False
        """The log has accepted the end of the run."""
        self._snapshot_at = first_snapshot
        while self._snapshot_at <= run.records:
            self._snapshot_at *= 2

    @property
    def verbatim(self) -> bool:
        """Whether the log has recorded everything as it was, so that a replay gives this very run."""
        return bool(getattr(self._log, "verbatim", False))

    @property
    def is_committed_later(self) -> bool:
        """Whether the host commits the question of a paused run together with the records before it, so that
        no question is sent that is not durable."""
        return bool(getattr(self._log, "commits_pauses", False))

    async def emit(self, event: GraphEvent) -> None:
        """Send an event to the listener."""
        if self.listener is not None:
            try:
                await self.listener(event)
            except Exception as error:
                self._refusal = error
                raise

    async def record(self, record: RunRecord, *, kind: CheckpointKind, label: str) -> None:
        """As `write`, then notify the listener."""
        self.write(record, kind, label)
        if self.marks:
            await self.notify_marks()

    def write(
        self, record: RunRecord, kind: CheckpointKind, label: str, values: Mapping[str, Any] | None = None
    ) -> None:
        """Apply the record and hand it to the log.

        The records that end the run are held back for `finish`, so that a log can include them in the
        commit of the outcome.
        """
        if self._failure is not None or self._refusal is not None:
            self.raise_failure()
        apply(self._run, record, values)
        if self._log is not None:
            self._hand_over(record, kind, label)

    def write_ordinary(
        self,
        frame: Frame,
        update: Mapping[str, Any],
        target: str,
        values: Mapping[str, Any],
        seconds: float,
        inner: list[Mapping[str, Any]] | None = None,
    ) -> None:
        """As `write`, for an ordinary step; without a log it builds no record. See `apply.advance`."""
        if self._failure is not None or self._refusal is not None:
            self.raise_failure()
        node, label = frame.node, frame.label
        # To four digits. `round` with digits takes ten times as long.
        seconds = round(seconds * 1e4) / 1e4 if seconds >= SHOWN_SECONDS else 0.0
        advance(self._run, frame, update, target, values, seconds, inner)
        if self._log is None:
            return
        record: RunRecord = {"do": "step", "node": node}
        if frame.id:
            record["frame"] = frame.id
        if update:
            record["update"] = update
        record["to"] = (target,)
        if seconds:
            record["seconds"] = seconds
        self._hand_over(record, "node_complete", label)

    async def notify_marks(self) -> None:
        """Send the checkpoints written since the last call."""
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

    async def finish(self, record: RunRecord) -> None:
        """Write the `end` record and the records held back by `write`."""
        if self._failure is not None or self._refusal is not None:
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
        if self.wants_details:
            await self.emit(Checkpointed("end", ""))

    def cut_off(self, kept: Mapping[str, Any]) -> None:
        """End a call that an error or a cancellation cuts off: queue the remaining records.

        Awaits and raises nothing, so that the cause is not replaced. Without `kept` no record is added: the
        run simply ends where its records end.
        """
        with contextlib.suppress(Exception):
            if self._log is not None and self._failure is None:
                last, self._last = self._last, []
                for record in last:
                    self._append(record)
            if kept:
                self.write({"do": "cancel", "kept": kept}, "cancel", "")

    async def notify_joins(self, run: Run) -> None:
        """Send the fan-outs that the last record joined."""
        if run.joined:
            joined, run.joined = run.joined, []
            for join in joined if self.wants_details else ():
                await self.emit(BranchesJoined(join.source, join.join, join.finished, join.failed))

    def raise_failure(self) -> None:
        """Raise the exception of the log or the listener, so that it is not taken for a node's failure."""
        failure = self._failure or self._refusal
        if failure is not None:
            raise failure

    def _hand_over(self, record: RunRecord, kind: CheckpointKind, label: str) -> None:
        """Hand an applied record to the log, and a snapshot when one is due."""
        if self._head is not None:
            record["head"], self._head = self._head, None
        at_rest = self._run.root.status in AT_REST
        if at_rest:
            self._last.append(record)
        else:
            self._append(record)
        if self.wants_details:
            self.marks.append(Checkpointed(kind, label))
        if self._run.records >= self._snapshot_at and not at_rest:
            self._snapshot_at *= 2
            self.write({"do": "snapshot", "run": dump(self._run)}, "snapshot", "")

    def _append(self, record: RunRecord) -> None:
        assert self._log is not None  # noqa: S101 - for the type checker
        try:
            self._log.append(record)
        except Exception as error:
            self._failure = error
            raise
