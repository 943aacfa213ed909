"""A connection that runs a queue of calls in order, in one task. It connects again when it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from gateway.storage.postgres.errors import as_storage_error, is_passing
from pipeline.domain.errors import StorageError

if TYPE_CHECKING:
    import asyncpg

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
    Row: TypeAlias = asyncpg.Record
else:
    Connection = Row = Any

T = TypeVar("T")

_LARGEST_BATCH = 256
MOST_ATTEMPTS = 5
"""At a transaction that another process is in the way of."""


@dataclass(slots=True, eq=False)
class QueuedCall:
    """One call and the future that gets its outcome."""

    work: Any
    """What the queue's `BatchWork` understands."""
    future: asyncio.Future[Any]
    settled: bool = False

    def succeed(self, result: Any) -> None:
        """Give the caller the result."""
        self.settled = True
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        """Give the caller the error."""
        self.settled = True
        if not self.future.done():
            self.future.set_exception(error)


class BatchWork(Protocol):
    """What a queue does with its connection."""

    async def connect(self) -> Connection:
        """A new connection."""
        ...

    async def run(self, connection: Connection, calls: list[QueuedCall]) -> None:
        """Run the calls and settle each. What it raises becomes the error of those that are not settled."""
        ...


class CallQueue:
    """Runs calls one batch after another. An abandoned call runs to its end: only its outcome is lost."""

    def __init__(self, name: str, work: BatchWork, place: str) -> None:
        self._name = name
        self._work = work
        self._place = place
        self._queue: asyncio.Queue[QueuedCall | None] = asyncio.Queue()
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect. Raises StorageError."""
        self._queue = asyncio.Queue()
        await self._connected()
        self._task = asyncio.create_task(self._live(), name=self._name)  # noqa: TID251 - `stop` awaits it

    def submit(self, work: object) -> asyncio.Future[Any]:
        """Queue the call; the future gets its result or its exception. Raises StorageError if
        it is closed."""
        if self._task is None:
            raise StorageError("the store is closed")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(QueuedCall(work=work, future=future))
        return future

    async def stop(self) -> None:
        """Finish the queued calls and close the connection. Safe to call twice."""
        task, self._task = self._task, None
        if task is not None:
            self._queue.put_nowait(None)
            await asyncio.shield(task)

    async def _live(self) -> None:
        stopping = False
        while not stopping:
            batch = [await self._queue.get()]
            while len(batch) < _LARGEST_BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            # Nothing can follow the None: after it `submit` refuses.
            stopping = batch[-1] is None
            await self._run([call for call in batch if call is not None])
        if self._connection is not None and not self._connection.is_closed():
            await self._close(self._connection)

    async def _run(self, calls: list[QueuedCall]) -> None:
        if not calls:
            return
        try:
            await self._work.run(await self._connected(), calls)
        except Exception as error:  # noqa: BLE001 - a failed batch must not end the task
            for call in calls:
                if not call.settled:
                    call.fail(as_storage_error(error, self._place))

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            try:
                self._connection = await self._work.connect()
            except Exception as error:
                raise as_storage_error(error, self._place) from error
        return self._connection

    async def _close(self, connection: Connection) -> None:
        try:
            await connection.close(timeout=5)
        except Exception:  # noqa: BLE001 - nothing is lost: every call has its outcome
            connection.terminate()


async def in_transaction(
    connection: Connection,
    call: QueuedCall,
    place: str,
    *,
    isolation: Literal["read_committed", "repeatable_read"],
) -> None:
    """Run the call's function in a separate transaction, and settle the call."""
    work: Callable[[Connection], Awaitable[Any]] = call.work
    for attempt in count(1):
        try:
            async with connection.transaction(isolation=isolation):
                result = await work(connection)
        except Exception as error:  # noqa: BLE001 - handed to the caller through its future
            if not is_passing(error) or attempt == MOST_ATTEMPTS:
                call.fail(as_storage_error(error, place))
                return
        else:
            call.succeed(result)
            return
