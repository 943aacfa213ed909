"""The records of runs that wait for a person, so that an answer does not read them from the store (ADR 0120).

They are used only while nothing was deleted through the store since they were recorded, and only once: what
resumes a run has its records. Not here: the state of these runs (`pipeline.graph.execution.kept_runs`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from gateway.storage.ports import Store
from gateway.turns.run_log import StoreRunLog
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.graph.run.records import RawRecord, RunUnreadable, head_of

MOST: Final = 64
"""Runs; the records of any other are read."""
_MOST_RECORDS: Final = 1_000
"""Of a run that is kept."""
_Records = tuple[RawRecord, ...]


class _Paused(NamedTuple):
    records: _Records
    erasures: int


class PausedRuns:
    """The newest paused runs of one process, by the thread and the message that began each."""

    def __init__(self, store: Store, most: int = MOST) -> None:
        self.store = store
        self._runs: BoundedDict[tuple[str, str], _Paused] = BoundedDict(most)

    def __len__(self) -> int:
        return len(self._runs)

    def keep(self, thread: str, message_id: str, records: _Records, erasures: int | None) -> None:
        """Keep the records of a run whose question is durable. `erasures` is the store's count from before
        they were recorded."""
        if records and erasures is not None and len(records) <= _MOST_RECORDS:
            self._runs[thread, message_id] = _Paused(records, erasures)

    def take(self, thread: str, message_id: str) -> _Records | None:
        """The records of a run, which are not kept any longer; None if only the store knows them."""
        found = self._runs.pop((thread, message_id), None)
        if found is None or found.erasures != self.store.erasures:
            return None
        return found.records


class TurnRun:
    """The run that one turn begins or resumes: its records from before the turn, and what is kept of it."""

    def __init__(
        self,
        paused: PausedRuns,
        log: StoreRunLog,
        read: Callable[[], Awaitable[_Records]],
        thread: str,
        message_id: str,
    ) -> None:
        """`read` reads the records from the store. The run was begun by the message `message_id`."""
        self._paused = paused
        self._log = log
        self._read = read
        self._key = (thread, message_id)
        self._erasures = paused.store.erasures

    async def records(self) -> _Records:
        """What is recorded of the run. Before the turn adds to it, it is read once, unless something was
        deleted meanwhile. Notes the run's id in the log."""
        records = await self._known()
        try:
            self._log.run_id = head_of(records)["run"] if records else ""
        except RunUnreadable:
            self._log.run_id = ""  # resuming the run reports the error
        return records

    async def _known(self) -> _Records:
        if self._log.made:
            return await self._read()
        erasures = self._paused.store.erasures
        if self._log.earlier is None or erasures is None or erasures != self._erasures:
            found = self._paused.take(*self._key)
            self._erasures = erasures
            self._log.earlier = await self._read() if found is None else found
        return self._log.earlier

    def keep(self) -> None:
        """Keep the run, whose question is durable, until it is answered."""
        if self._log.earlier is not None:
            self._paused.keep(*self._key, (*self._log.earlier, *self._log.made), self._erasures)
