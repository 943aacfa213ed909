"""A connection that runs a queue of calls in order, in one task. It connects again when it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from gateway.storage.postgres.errors import as_storage_error
from pipeline.domain.errors import StorageError

if TYPE_CHECKING:
    import asyncpg

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    Connection = Any

T = TypeVar("T")

_LARGEST_BATCH = 256


@dataclass(slots=True, eq=False)
class Call:
    """One call and the future that gets its outcome."""

    work: Any
    """What the lane's `BatchWork` understands."""
    future: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None


class BatchWork(Protocol):
    """What a lane does with its connection."""

    async def connect(self) -> Connection:
        """A new connection."""
        ...

    async def run(self, connection: Connection, calls: list[Call]) -> None:
        """Run the calls and set the outcome of each."""
        ...


class Lane:
    """Runs calls one batch after another. An abandoned call runs to its end: only its outcome is lost."""

    def __init__(self, name: str, work: BatchWork, place: str) -> None:
        self._name = name
        self._work = work
        self._place = place
        self._queue: asyncio.Queue[Call | None] = asyncio.Queue()
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
        self._queue.put_nowait(Call(work=work, future=future))
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

    async def _run(self, calls: list[Call]) -> None:
        if not calls:
            return
        try:
            await self._work.run(await self._connected(), calls)
        except Exception as error:  # noqa: BLE001 - a failed batch must not end the task
            for call in calls:
                call.error = call.error or error
        for call in calls:
            if call.future.done():
                continue
            if call.error is not None:
                call.future.set_exception(as_storage_error(call.error, self._place))
            else:
                call.future.set_result(call.result)

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


async def in_transaction(connection: Connection, call: Call, *, readonly: bool = False) -> None:
    """Run the call's function in a transaction of its own and set its outcome."""
    work: Callable[[Connection], Awaitable[Any]] = call.work
    try:
        if readonly:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                call.result = await work(connection)
        else:
            async with connection.transaction():
                call.result = await work(connection)
    except Exception as error:  # noqa: BLE001 - handed to the caller through its future
        call.error = error
