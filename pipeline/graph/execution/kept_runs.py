"""Runs that wait for a person, kept in memory so that an answer need not replay their records (ADR 0107).

The records stay the truth: a run is used only while the records that a caller has read are exactly those that
it has made. Not here: when a run is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from pipeline.graph.run.records import Head, RawRecord, RunUnreadable, head_of
from pipeline.graph.run.replay import Replayed
from pipeline.graph.run.state import Run

MOST: Final = 64
"""Runs of one executor; the one that was kept first goes first, and is replayed when it is answered."""


class KeptRuns:
    """The runs of one executor, as they were when they began to wait."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._runs: OrderedDict[str, tuple[Run, Head]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def keep(self, run: Run, head: Head) -> None:
        """Keep a run. Only `drop` and `find` may be called before it is changed."""
        self.drop(run.id)
        self._runs[run.id] = (run, head)
        if len(self._runs) > self._most:
            self._runs.popitem(last=False)

    def find(self, records: Sequence[RawRecord]) -> Replayed | None:
        """The run in `records`, as `replay` gives it; None if it is not kept, or was resumed elsewhere, or if
        a record cannot be read."""
        if not self._runs or None in records:
            return None
        try:
            head = head_of(records)
        except RunUnreadable:
            return None
        found = self._runs.get(head["run"])
        if found is None or found[0].records != len(records) or found[1]["signature"] != head["signature"]:
            return None
        asked = _newest_gate(records)
        if all(gate.id != asked for gate in found[0].open_gates()):
            return None
        return Replayed(*found, len(records), 0)

    def drop(self, run_id: str) -> None:
        """Forget a run: it is being resumed, or has ended."""
        self._runs.pop(run_id, None)


def _newest_gate(records: Sequence[RawRecord]) -> str:
    """The id of the gate that was opened last; empty without one."""
    opened = (
        record for record in reversed(records) if record and record["do"] == "step" and "gate" in record
    )
    newest = next(opened, None)
    return "" if newest is None else str(newest["gate"]["id"])
