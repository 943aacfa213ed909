"""Parlour's side of the graph bench. `python -m bench.graph_ours FOLDER`.

Nothing is switched off: a listener is called with every event, updates are checked and frozen, and the SQLite
store is the product's, under a lease, with `synchronous = FULL` unless a case says otherwise.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.graph_ours_graphs import graph_for
from bench.graph_work import Case, inputs, seed
from bench.graph_worker import Hold, Turn, serve
from gateway import __version__
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease, NewRecord, Record, Store
from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.connection import Synchronous
from gateway.turns.run_codec import from_rows
from gateway.turns.run_log import TOGETHER_S, StoreRunLog
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import new_id
from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.frozen_json import freeze
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.events import GraphEvent
from pipeline.graph.run.outcome import RunOutcome
from pipeline.graph.run.replay import replay

_TTL_S = 3600.0
_LIVE_THREADS = 8
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    """A place in a channel with its live state."""

    key: str
    state: State
    lease: Lease | None
    session_id: str
    records: int = 0
    """How many the log held when the thread was made; later rounds add to it."""


class Ours:
    """Parlour's engine under measurement."""

    def __init__(self, folder: Path, hold: Hold) -> None:
        self._folder = folder
        self._hold = hold
        self._case: Case | None = None
        self._store: Store | None = None
        self._path: Path | None = None
        self._threads: list[_Thread] = []
        self._heard = 0

    def about(self) -> dict[str, Any]:
        """The version, and what SQLite does at a commit: 2 is FULL."""
        return {"versions": {"parlour": __version__}, "synchronous": 2}

    async def prepare(self, case: Case, count: int) -> Sequence[Turn]:
        """A thread's state is immutable, so the same threads serve every turn and round of a case: as many
        as the peer has, or as are to be held at once."""
        if case != self._case:
            await self.close()
            await self._open_store(case)
            self._case = case
        graph = graph_for(case.graph, self._hold)
        # A companion's pipeline asks for the events that its host shows, the others here for all of them.
        executor = Executor(graph, clock=_CLOCK, details=case.graph != "safety8")
        live = count if case.graph == "held" else min(count, max(_LIVE_THREADS, case.at_once))
        while len(self._threads) < live:
            self._threads.append(await self._thread(case, executor))
        if case.store == "sqlite-cold":
            return [self._cold_turn(case, graph, executor, number) for number in range(count)]
        return [self._turn(case, executor, number) for number in range(count)]

    def database(self) -> Path | None:
        return self._path

    async def records(self, thread: str) -> tuple[Record, ...]:
        """Everything that the runs of a thread have left in the log, oldest first."""
        if self._store is None:
            return ()
        return await self._store.read_log(thread, kinds=("step",))

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
        self._case = self._store = self._path = None
        self._threads = []

    async def _open_store(self, case: Case) -> None:
        if case.store == "memory":
            self._store = MemoryStore()
        elif case.store.startswith("sqlite"):
            self._path = self._folder / f"{case.graph}-{case.store}-{case.history}.sqlite3"
            level: Synchronous = "NORMAL" if case.store == "sqlite-normal" else "FULL"
            self._store = SqliteStore(self._path, synchronous=level)
        if self._store is not None:
            await self._store.open()

    async def _thread(self, case: Case, executor: Executor[None]) -> _Thread:
        key, lease = f"web:local:{len(self._threads) + 1}", None
        if self._store is not None:
            lease = await self._store.acquire_lease(key, "bench", ttl_s=_TTL_S, now=_CLOCK.now())
        history = seed(key, case.history)
        state: State = freeze({"history": history} if history else {})
        thread = _Thread(key=key, state=state, lease=lease, session_id=new_id("ses"))
        if case.store == "sqlite-cold":
            return replace(thread, records=await self._fill_log(case, executor, thread))
        return thread

    def _turn(self, case: Case, executor: Executor[None], number: int) -> Turn:
        thread = self._threads[number % len(self._threads)]
        begin = inputs(case, thread.key, number)

        async def turn() -> Mapping[str, Any]:
            return await self._run(executor, thread, begin, thread.state)

        return turn

    def _cold_turn(self, case: Case, graph: GraphSpec[None], executor: Executor[None], number: int) -> Turn:
        thread = self._threads[number % len(self._threads)]
        begin = inputs(case, thread.key, number)

        async def turn() -> Mapping[str, Any]:
            state = rebuilt(graph, (await self.records(thread.key))[: thread.records])
            return await self._run(executor, thread, begin, state)

        return turn

    async def _run(
        self, executor: Executor[None], thread: _Thread, begin: Mapping[str, Any], state: State
    ) -> Mapping[str, Any]:
        if self._store is None or thread.lease is None:
            return _ended(await executor.run(begin, None, base=state, listener=self._hear))
        message_id = new_id("msg")

        def row(body: Mapping[str, Any]) -> NewRecord:
            return NewRecord(
                kind="step", session_id=thread.session_id, message_id=message_id, body=body, at=_CLOCK.now()
            )

        log = StoreRunLog(self._store, thread.lease, row)
        if self._case is not None and self._case.graph == "safety8":
            # As for a companion in the gateway.
            log.together_s = TOGETHER_S
        outcome = await executor.run(begin, None, base=state, listener=self._hear, log=log)
        # Where a turn of the gateway commits its answer, and the last records with it.
        await self._store.append(thread.lease, [*await log.unwritten(), *log.last_rows()])
        return _ended(outcome)

    async def _hear(self, _event: GraphEvent) -> None:
        self._heard += 1

    async def _fill_log(self, case: Case, executor: Executor[None], thread: _Thread) -> int:
        """Run turns until the log holds the history, from which a cold turn starts; returns its records."""
        state: State = {}
        for number in range(case.history // 2):
            state = await self._run(executor, thread, inputs(case, thread.key, number), state)
        return len(await self.records(thread.key))


def _ended(outcome: RunOutcome) -> State:
    outcome.raise_for_failure()
    return outcome.state


def rebuilt(graph: GraphSpec[None], records: Sequence[Record]) -> State:
    """A thread's state from the records of all its runs, oldest first, by the engine's rules."""
    state: State = {}
    for _, run in groupby(records, key=lambda record: record.message_id):
        together = [record for row in run for record in from_rows(row.body)]
        state = replay(graph, together, state).run.root.values
    return state


async def _main(folder: Path) -> None:
    hold = Hold()
    await serve(Ours(folder, hold), hold)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
