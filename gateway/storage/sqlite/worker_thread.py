"""A thread that owns one connection and runs a queue of calls, one batch at a time.

Not here: tables and transactions. A `DatabaseWork` defines how a batch runs.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from gateway.storage.sqlite.loop_mailbox import LoopMailbox
from pipeline.domain.errors import StorageError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_LARGEST_BATCH = 256
"""Calls after which a batch takes no more; what is handed over together is never divided below that."""
_QUIET_AFTER = 8
"""Batches of one call, one after the other, after which a call is handed over at once: with many chats there
are rarely so many."""


@dataclass(slots=True, eq=False)
class DatabaseCall:
    """One call, its outcome, and the future on the loop that receives it."""

    work: Work[Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class _Outcomes(NamedTuple):
    """Calls with their outcomes."""

    calls: Sequence[DatabaseCall]
    ended: bool = False
    """The thread has ended."""


class DatabaseWork(Protocol):
    """What a DatabaseThread does with its connection. All methods run in that thread."""

    def connect(self) -> sqlite3.Connection:
        """Open the thread's connection. Raises StorageError."""
        ...

    def run(self, db: sqlite3.Connection, calls: list[DatabaseCall]) -> None:
        """Run the calls and set the outcome of each."""
        ...

    def on_idle(self, db: sqlite3.Connection) -> None:
        """Called once after `idle_after_s` seconds without a call."""
        ...

    def finish(self, db: sqlite3.Connection) -> None:
        """Called before the connection is closed."""
        ...


class DatabaseThread:
    """Runs calls in its thread. Submit from the loop that called `start`; results arrive on that loop.

    Calls that are submitted in one pass of the loop are handed over together, at its end. Handed over one by
    one, the first wakes the thread, which then competes with the loop for the interpreter and mostly commits
    it alone: six times as many commits with many chats, and more processor time for each turn (ADR 0112).

    After several batches of one call there is nothing to gather: a call is handed over at once, and the
    loop sends its frames during the wait for the disk, not before it (ADR 0135).
    """

    def __init__(self, name: str, work: DatabaseWork, *, idle_after_s: float = 0.5) -> None:
        self._name = name
        self._work = work
        self._idle_after_s = idle_after_s
        self._queue: queue.SimpleQueue[Sequence[DatabaseCall] | None] = queue.SimpleQueue()
        self._submitted: list[DatabaseCall] = []
        """What is not handed over yet; used by the loop alone."""
        self._lone = 0
        """How many of the last batches, one after the other, were one call."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._results: LoopMailbox[_Outcomes] | None = None
        self._stopped: asyncio.Future[None] | None = None
        self._accepting = False
        self._stopping = False

    async def start(self) -> None:
        """Start the thread and wait for its connection. Raises StorageError if it cannot be opened."""
        self._loop = asyncio.get_running_loop()
        self._results = LoopMailbox(self._loop, self._settle)
        self._stopped = self._loop.create_future()
        ready = DatabaseCall(work=_nothing, future=self._loop.create_future())
        # A daemon thread, because an interpreter that exits without `stop` must not wait for it; the file
        # survives that like a kill.
        threading.Thread(target=self._live, args=(ready,), name=self._name, daemon=True).start()
        self._accepting = True
        await ready.future

    def submit(self, work: Work[T]) -> asyncio.Future[T]:
        """Queue `work`; the future gets its result or exception."""
        if self._loop is None or not self._accepting:
            raise StorageError("the store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        call = DatabaseCall(work=work, future=future)
        if self._lone >= _QUIET_AFTER and not self._submitted:
            self._queue.put((call,))
            return future
        if not self._submitted:
            self._loop.call_soon(self._hand_over)
        self._submitted.append(call)
        return future

    async def stop(self) -> None:
        """Finish the queued calls and end the thread. A repeated call waits for the same end."""
        if self._accepting:
            self._accepting = False
            self._hand_over()
            self._queue.put(None)
        if self._stopped is not None:
            await asyncio.shield(self._stopped)

    # -- in the database thread ---------------------------------------------------------------
    def _live(self, ready: DatabaseCall) -> None:
        try:
            db = self._work.connect()
        except Exception as error:  # noqa: BLE001 - passed to the caller of `start`
            ready.error = error
            self._post([ready], ended=True)
            return
        self._post([ready])
        try:
            while not self._stopping:
                self._run(db, self._next_batch(db))
            self._work.finish(db)
        finally:
            db.close()
            self._post([], ended=True)

    def _next_batch(self, db: sqlite3.Connection) -> list[DatabaseCall]:
        try:
            item = self._queue.get(timeout=self._idle_after_s)
        except queue.Empty:
            self._work.on_idle(db)
            item = self._queue.get()
        batch: list[DatabaseCall] = []
        while True:
            if item is None:
                self._stopping = True
                return batch
            batch += item
            if len(batch) >= _LARGEST_BATCH:
                return batch
            # Nothing else takes from the queue.
            if self._queue.empty():
                return batch
            item = self._queue.get_nowait()

    def _run(self, db: sqlite3.Connection, batch: list[DatabaseCall]) -> None:
        if not batch:
            return
        try:
            self._work.run(db, batch)
        except Exception as error:  # noqa: BLE001 - a failed batch must not end the thread
            for call in batch:
                call.error = call.error or error
        self._post(batch)

    def _post(self, batch: Sequence[DatabaseCall], *, ended: bool = False) -> None:
        assert self._results is not None  # noqa: S101 - `start` sets it before the thread exists
        if not self._results.put(_Outcomes(batch, ended)):
            # The loop was closed without `stop`.
            self._stopping = True

    # -- on the loop --------------------------------------------------------------------------
    def _hand_over(self) -> None:
        calls, self._submitted = self._submitted, []
        for start in range(0, len(calls), _LARGEST_BATCH):
            self._queue.put(calls[start : start + _LARGEST_BATCH])

    def _settle(self, outcomes: _Outcomes) -> None:
        self._lone = self._lone + 1 if len(outcomes.calls) == 1 else 0
        for call in outcomes.calls:
            if call.future.done():
                continue
            if call.error is not None:
                call.future.set_exception(call.error)
            else:
                call.future.set_result(call.result)
        if outcomes.ended:
            self._end()

    def _end(self) -> None:
        # Calls come only from the loop, so none can be queued between this line and the loop below.
        self._accepting = False
        self._hand_over()
        left: list[DatabaseCall] = []
        while not self._queue.empty():
            left += self._queue.get_nowait() or ()
        for call in left:
            call.error = StorageError("the store is closed")
        self._settle(_Outcomes(left))
        if self._results is not None:
            self._results.close()
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)


def _nothing(_: sqlite3.Connection) -> None:
    return None
