"""`Database`: one connection that writes and one that reads, to one Postgres database.

Tables are in the schema `parlour`, which every connection searches first.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any, Final, Literal, TypeVar, cast
from urllib.parse import urlsplit

import asyncpg

from gateway.storage.formats import Formats, StoreFormat, held_back, too_old
from gateway.storage.postgres.call_queue import (
    MOST_ATTEMPTS,
    CallQueue,
    Connection,
    QueuedCall,
    in_transaction,
)
from gateway.storage.postgres.errors import as_storage_error, is_lost, is_passing
from gateway.storage.postgres.migration_steps import STEPS, MigrationStep, formats_of
from gateway.storage.postgres.migrations import migrate, settled_format, store_format
from gateway.storage.postgres.operations import Operation
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import StorageError

__all__ = ["Connection", "Database", "place_of"]

T = TypeVar("T")
Work = Callable[[Connection], Awaitable[T]]

Use = Literal["alone", "shared", "beside"]
"""`alone`: while no other process has it open alone or shared; `shared`: while none has it alone; `beside`:
at any time, as a command does."""
_CONNECT_S = 10.0
_STATEMENT_S = 60.0
_AGAIN_S = 0.25
"""Between two looks whether an older process has ended."""
_OWNER_LOCK = 0x5061726C6F7573
"""The key of the advisory lock that a gateway holds while it has the database open."""
_HOLD: Final[Mapping[Use, str]] = {
    "alone": "SELECT pg_advisory_lock($1)",
    "shared": "SELECT pg_advisory_lock_shared($1)",
}
_APPLY = "SELECT apply($1::jsonb)"


class Database:
    """Runs functions on connections that it keeps and renews.

    Writes run in the order of the calls, each in its own transaction; a read sees every write that was
    awaited before it. Errors of Postgres become StorageErrors. A function that raises changes nothing.
    """

    def __init__(
        self,
        url: str,
        *,
        steps: Sequence[MigrationStep] = STEPS,
        use: Use = "beside",
        claim_s: float = 10.0,
        migrates: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """It is opened once its `use` allows it beside those of other processes, and once those of an older
        release do not keep a step back that it needs; each is waited for up to `claim_s` seconds. Without
        `migrates` its schema stays as it is."""
        self._use = use
        self._migrates = migrates
        self._clock = clock or SystemClock()
        self.formats: Formats = formats_of(steps)
        """What this program can use."""
        self._claim_s = claim_s
        self._url = url
        self._steps = steps
        self.place = place_of(url)
        self.batches = 0
        """Batches of operations that were committed, each by one round trip."""
        self.refused_batches = 0
        """Those whose operations were run one by one afterwards."""
        self._writer = CallQueue("postgres-writer", _Writing(self), self.place)
        self._reader = CallQueue("postgres-reader", _Reading(self), self.place)

    async def open(self) -> None:
        """Connect and migrate. Raises StorageError, also for a schema that this program cannot use."""
        await self._writer.start()
        try:
            await self._reach_format()
            await self._reader.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish the queued calls and disconnect. Safe to call twice."""
        await self._reader.stop()
        await self._writer.stop()

    async def format(self) -> StoreFormat:
        """How far the schema is."""
        return await self.read(lambda connection: store_format(connection, self._steps))

    async def settled_format(self) -> StoreFormat:
        """The same, once a migration that runs now in another process is over."""
        return await self.write(lambda connection: settled_format(connection, self._steps))

    async def upgrade(self) -> StoreFormat:
        """Apply the steps that wait for no living process."""
        alone = self._use == "alone"
        return await self.write(lambda db: migrate(db, self.place, self._steps, alone=alone))

    async def write(self, change: Work[T]) -> T:
        """Run `change` in a separate transaction, after every write that was called before it."""
        return cast("T", await self._writer.submit(change))

    def submit(self, change: Work[T]) -> asyncio.Future[T]:
        """As `write`, but queued before it returns. Raises StorageError if it is closed."""
        return cast("asyncio.Future[T]", self._writer.submit(change))

    def apply(self, operation: Operation[T]) -> asyncio.Future[T]:
        """Queue an operation, which shares its transaction with those that wait next to it. Raises
        StorageError if the database is closed."""
        return cast("asyncio.Future[T]", self._writer.submit(operation))

    async def fetch(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        """The rows of one statement that reads."""
        return cast("list[asyncpg.Record]", await self._reader.submit(_Statement(sql, values)))

    async def read(self, query: Work[T]) -> T:
        """Run `query` in a read-only transaction that sees one state of the database."""
        return cast("T", await self._reader.submit(query))

    async def connect(self, *, readonly: bool = False) -> Connection:
        """A new connection, for the caller to close. Raises the errors of asyncpg."""
        return await asyncpg.connect(
            self._url,
            timeout=_CONNECT_S,
            command_timeout=_STATEMENT_S,
            server_settings={
                "search_path": "parlour",
                "application_name": "parlour",
                "timezone": "UTC",
                "default_transaction_read_only": "on" if readonly else "off",
                # The statements of `apply` find rows by their keys: planning them at each call takes longer
                # than running them.
                "plan_cache_mode": "auto" if readonly else "force_generic_plan",
                # The server notices within a minute that the other machine is gone, and frees what it held.
                "tcp_keepalives_idle": "30",
                "tcp_keepalives_interval": "10",
                "tcp_keepalives_count": "3",
                # A process that stops between two statements must not keep its locks for ever.
                "idle_in_transaction_session_timeout": "60s",
            },
        )

    async def _reach_format(self) -> None:
        """Bring the schema to one that this program can use. Raises StorageError."""
        if not self._migrates:
            found = await self.settled_format()
            if not found.is_usable:
                raise StorageError(too_old(self.place, found))
            return
        until = self._clock.monotonic() + self._claim_s
        while (found := await self.upgrade()).version < self.formats.oldest:
            if self._clock.monotonic() >= until:
                raise StorageError(held_back(self.place, found))
            # A process that was killed counts as alive for a while.
            await self._clock.sleep(_AGAIN_S)

    async def claim(self, connection: Connection) -> None:
        """Hold the database for this process as long as the connection lasts. Raises StorageError while
        another process holds it otherwise."""
        if self._use == "beside":
            return
        # The server needs a moment to notice the end of a process that was killed.
        await connection.execute(f"SET lock_timeout = '{round(self._claim_s * 1000)}ms'")
        try:
            await connection.execute(_HOLD[self._use], _OWNER_LOCK)
        except asyncpg.LockNotAvailableError:
            raise StorageError(
                f"{self.place} is in use by another gateway; stop that one, give this one another database, "
                "or set cluster.role for both"
            ) from None
        await connection.execute("RESET lock_timeout")


class _Writing:
    """Runs neighbouring operations as one batch, and each function in a separate transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def connect(self) -> Connection:
        connection = await self._database.connect()
        try:
            await self._database.claim(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def run(self, connection: Connection, calls: list[QueuedCall]) -> None:
        for are_operations, group in groupby(calls, key=lambda call: isinstance(call.work, Operation)):
            if are_operations:
                await self._apply(connection, list(group))
                continue
            for call in group:
                await in_transaction(connection, call, self._database.place, isolation="read_committed")

    async def _apply(self, connection: Connection, calls: list[QueuedCall]) -> None:
        try:
            found = json.loads(await connection.fetchval(_APPLY, _batch(call.work for call in calls)))
        except asyncpg.PostgresError as error:
            if is_lost(error):
                raise
            self._database.refused_batches += 1
            for call in calls:
                await self._apply_alone(connection, call)
            return
        self._database.batches += 1
        for call, result in zip(calls, found, strict=True):
            _settle(call, result)

    async def _apply_alone(self, connection: Connection, call: QueuedCall) -> None:
        """Run one operation of a batch that the database refused as a whole: for a value that it cannot hold,
        or because another process was in the way."""
        for attempt in count(1):
            try:
                found = json.loads(await connection.fetchval(_APPLY, _batch([call.work])))
            except asyncpg.PostgresError as error:
                if is_lost(error):
                    raise
                if not is_passing(error) or attempt == MOST_ATTEMPTS:
                    call.fail(as_storage_error(error, self._database.place))
                    return
            else:
                _settle(call, found[0])
                return


class _Reading:
    """Runs each function in a transaction that sees one state, and single statements without one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def connect(self) -> Connection:
        return await self._database.connect(readonly=True)

    async def run(self, connection: Connection, calls: list[QueuedCall]) -> None:
        for call in calls:
            if not isinstance(call.work, _Statement):
                await in_transaction(connection, call, self._database.place, isolation="repeatable_read")
                continue
            try:
                rows = await connection.fetch(call.work.sql, *call.work.values)
            except Exception as error:  # noqa: BLE001 - handed to the caller through its future
                call.fail(as_storage_error(error, self._database.place))
            else:
                call.succeed(rows)


@dataclass(frozen=True, slots=True)
class _Statement:
    sql: str
    values: tuple[Any, ...]


def _batch(operations: Iterable[Operation[Any]]) -> str:
    return f"[{','.join(operation.text for operation in operations)}]"


def _settle(call: QueuedCall, result: dict[str, Any]) -> None:
    try:
        call.succeed(call.work.outcome(result))
    except StorageError as refusal:
        call.fail(refusal)


def place_of(url: str) -> str:
    """Server and database of a URL in words for people, without user and password. Raises StorageError for
    a URL of another kind."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise StorageError("the URL of the Postgres server cannot be read") from error
    if parts.scheme not in ("postgres", "postgresql"):
        raise StorageError("the URL of the Postgres server must begin with postgresql://")
    return f"Postgres {parts.hostname or 'local'}{port}{parts.path}"
