"""`python -m tests.support.graph_child FOLDER`: runs of a long graph, in processes made to be killed.

Commands are lines on the standard input: `start RUN` forks a process that starts or resumes the run and
prints its pid, `reap` waits for it and prints its exit code, negative for a signal. Forking avoids repeated
imports.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.storage.json_bodies import encode_body
from gateway.storage.ports import Lease, NewRecord
from gateway.storage.sqlite import SqliteStore
from gateway.turns.run_codec import newest_run
from gateway.turns.run_log import StoreRunLog
from pipeline.domain.clock import SystemClock
from pipeline.graph.execution.executor import Executor
from tests.support.killed_graph import Ledger, Workplace, killed_graph

THREAD = "console:local:killed"
STORE = "store.sqlite3"
_CLOCK = SystemClock()


class AcknowledgedStore(SqliteStore):
    """Records every row of the log when the store reports that it is durable."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / STORE)
        self._acknowledged = Ledger(folder / "acknowledged")

    def append(
        self, lease: Lease, records: Sequence[NewRecord], *, attempt: int | None = None
    ) -> asyncio.Future[tuple[int, ...]]:
        texts = [encode_body(record.body) for record in records]
        future = super().append(lease, records, attempt=attempt)

        def note(done: asyncio.Future[tuple[int, ...]]) -> None:
            if not done.cancelled() and done.exception() is None:
                for row_id, text in zip(done.result(), texts, strict=True):
                    self._acknowledged.note(row_id, text)

        future.add_done_callback(note)
        return future


async def live(folder: Path, run_id: str) -> None:
    """Start or resume the run, and record its end."""
    store = AcknowledgedStore(folder)
    await store.open()
    await store.break_leases()
    lease = await store.acquire_lease(THREAD, f"process {os.getpid()}", ttl_s=600, now=_CLOCK.now())
    assert lease is not None

    def row(body: Mapping[str, Any]) -> NewRecord:
        return NewRecord(kind="step", session_id="s", message_id=run_id, body=body, at=_CLOCK.now())

    log = StoreRunLog(store, lease, row)
    place = Workplace(folder, _CLOCK)
    executor = Executor(killed_graph(), clock=_CLOCK)
    records = newest_run(await store.read_log(THREAD, kinds=("step",), message_id=run_id))
    Ledger(folder / "begun").note(run_id)
    if records:
        await executor.resume(records, place, log=log)
    else:
        await executor.run({}, place, run_id=run_id, log=log)
    await store.append(lease, [*await log.unwritten(), *log.last_rows()])
    await store.close()


def main(folder: Path) -> None:
    """Execute the lines of the standard input until it ends."""
    pid = 0
    for line in sys.stdin:
        word, _, run_id = line.strip().partition(" ")
        if word == "start":
            pid = os.fork()
            if pid == 0:
                asyncio.run(live(folder, run_id))
                os._exit(0)
            answer = pid
        else:
            answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
