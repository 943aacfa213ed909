"""A thread that owns one connection and works through a queue of calls, a batch at a time.

It knows nothing of tables or transactions: how a batch runs is given to it.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pipeline.domain.errors import StorageError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_LARGEST_BATCH = 256


@dataclass(slots=True, eq=False)
class Call:
    """One piece of work, its outcome, and the future that waits for it on the loop."""

    work: Work[Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class LaneWork(Protocol):
    """What a lane does with its connection. All of it runs in the lane's thread."""

    def connect(self) -> sqlite3.Connection:
        """The lane's connection. Raises StorageError."""
        ...

    def run(self, db: sqlite3.Connection, calls: list[Call]) -> None:
        """Run the calls and note each one's outcome in it."""
        ...

    def rest(self, db: sqlite3.Connection) -> None:
        """Called once when no call has come for `rest_after_s`."""
        ...

    def finish(self, db: sqlite3.Connection) -> None:
        """Called before the connection is closed."""
        ...


class DatabaseThread:
    """Submit from the loop that called `start`; results come back on that loop."""

    def __init__(self, name: str, work: LaneWork, *, rest_after_s: float = 0.5) -> None:
        self._name = name
        self._work = work
        self._rest_after_s = rest_after_s
        self._queue: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Future[None] | None = None
        self._accepting = False
        self._stopping = False

    async def start(self) -> None:
        """Start the thread and wait for its connection. Raises StorageError when there is none."""
        self._loop = asyncio.get_running_loop()
        self._stopped = self._loop.create_future()
        ready = Call(work=_nothing, future=self._loop.create_future())
        # A daemon, because an interpreter that exits without `stop` must not wait for it; the file
        # survives that as it survives a kill.
        threading.Thread(target=self._live, args=(ready,), name=self._name, daemon=True).start()
        self._accepting = True
        await ready.future

    def submit(self, work: Work[T]) -> asyncio.Future[T]:
        """Queue `work`; the future gets its result, or its exception."""
        if self._loop is None or not self._accepting:
            raise StorageError("the store is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(Call(work=work, future=future))
        return future

    async def stop(self) -> None:
        """Finish what is queued and end the thread. Later calls wait for the same end."""
        if self._accepting:
            self._accepting = False
            self._queue.put(None)
        if self._stopped is not None:
            await asyncio.shield(self._stopped)

    # -- in the lane's thread -----------------------------------------------------------------
    def _live(self, ready: Call) -> None:
        try:
            db = self._work.connect()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits in `start`
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

    def _next_batch(self, db: sqlite3.Connection) -> list[Call]:
        try:
            item = self._queue.get(timeout=self._rest_after_s)
        except queue.Empty:
            self._work.rest(db)
            item = self._queue.get()
        batch: list[Call] = []
        while True:
            if item is None:
                self._stopping = True
                return batch
            batch.append(item)
            if len(batch) == _LARGEST_BATCH:
                return batch
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch

    def _run(self, db: sqlite3.Connection, batch: list[Call]) -> None:
        if not batch:
            return
        try:
            self._work.run(db, batch)
        except Exception as error:  # noqa: BLE001 - the thread has to outlive whatever a batch does
            for call in batch:
                call.error = call.error or error
        self._post(batch)

    def _post(self, batch: Iterable[Call], *, ended: bool = False) -> None:
        assert self._loop is not None  # noqa: S101 - `start` sets it before the thread exists
        try:
            self._loop.call_soon_threadsafe(self._settle, batch, ended)
        except RuntimeError:
            # The loop was closed without `stop`: nobody is left who could wait for an outcome.
            self._stopping = True

    # -- on the loop --------------------------------------------------------------------------
    def _settle(self, batch: Iterable[Call], ended: bool) -> None:  # noqa: FBT001 - a loop callback
        for call in batch:
            if call.future.done():
                continue
            if call.error is not None:
                call.future.set_exception(call.error)
            else:
                call.future.set_result(call.result)
        if ended:
            self._end()

    def _end(self) -> None:
        # Calls come from the loop alone, so none can slip in between this and the emptied queue.
        self._accepting = False
        left: list[Call] = []
        while not self._queue.empty():
            call = self._queue.get_nowait()
            if call is not None:
                call.error = StorageError("the store is closed")
                left.append(call)
        self._settle(left, ended=False)
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)


def _nothing(_: sqlite3.Connection) -> None:
    return None
