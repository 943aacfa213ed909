"""`Database`: one connection that writes and one that reads, to one Postgres database.

Tables are in the schema `parlour`, which every connection searches first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast
from urllib.parse import urlsplit

import asyncpg

from gateway.storage.postgres.lane import Call, Connection, Lane, in_transaction
from gateway.storage.postgres.migrations import migrate
from gateway.storage.postgres.steps import STEPS, Step
from pipeline.domain.errors import StorageError

__all__ = ["Connection", "Database", "place_of"]

T = TypeVar("T")
Work = Callable[[Connection], Awaitable[T]]

_CONNECT_S = 10.0
_STATEMENT_S = 60.0


class Database:
    """Runs functions on connections that it keeps and renews.

    Writes run in the order of the calls, each in its own transaction; a read sees every write that was
    awaited before it. Errors of Postgres become StorageErrors. A function that raises changes nothing.
    """

    def __init__(self, url: str, *, steps: Sequence[Step] = STEPS) -> None:
        self._url = url
        self._steps = steps
        self.place = place_of(url)
        self._writer = Lane("postgres-writer", _Writing(self), self.place)
        self._reader = Lane("postgres-reader", _Reading(self), self.place)

    async def open(self) -> None:
        """Connect and migrate. Raises StorageError, also for a newer schema than this program's."""
        await self._writer.start()
        try:
            await self.write(lambda connection: migrate(connection, self.place, self._steps))
            await self._reader.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish the queued calls and disconnect. Safe to call twice."""
        await self._reader.stop()
        await self._writer.stop()

    async def write(self, change: Work[T]) -> T:
        """Run `change` in a transaction of its own, after every write that was called before it."""
        return cast("T", await self._writer.submit(change))

    def submit(self, change: Work[T]) -> asyncio.Future[T]:
        """As `write`, but queued before it returns. Raises StorageError if it is closed."""
        return cast("asyncio.Future[T]", self._writer.submit(change))

    async def read(self, query: Work[T]) -> T:
        """Run `query` in a read-only transaction that sees one state of the database."""
        return cast("T", await self._reader.submit(query))

    async def connect(self) -> Connection:
        """A new connection, for the caller to close. Raises the errors of asyncpg."""
        return await asyncpg.connect(
            self._url,
            timeout=_CONNECT_S,
            command_timeout=_STATEMENT_S,
            server_settings={
                "search_path": "parlour",
                "application_name": "parlour",
                "timezone": "UTC",
                # A process that stops between two statements must not keep its locks for ever.
                "idle_in_transaction_session_timeout": "60s",
            },
        )


class _Writing:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def connect(self) -> Connection:
        return await self._database.connect()

    async def run(self, connection: Connection, calls: list[Call]) -> None:
        for call in calls:
            await in_transaction(connection, call)


class _Reading:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def connect(self) -> Connection:
        return await self._database.connect()

    async def run(self, connection: Connection, calls: list[Call]) -> None:
        for call in calls:
            await in_transaction(connection, call, readonly=True)


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
