"""Use a database while gateways use it, for CLI commands. Changes no schema."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gateway.storage.formats import too_old
from gateway.storage.postgres.books import PostgresBooks
from gateway.storage.postgres.database import Database
from gateway.storage.postgres.errors import as_storage_error
from gateway.storage.postgres.jobs import PostgresJobs
from gateway.storage.postgres.migration_steps import STEPS, formats_of
from gateway.storage.postgres.migrations import store_format
from gateway.storage.postgres.person_records import PostgresPersonRecords
from pipeline.domain.errors import StorageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What commands use of a database."""

    database: Database
    books: PostgresBooks
    jobs: PostgresJobs
    records: PostgresPersonRecords


@asynccontextmanager
async def opened_beside(url: str) -> AsyncIterator[Opened]:
    """The books of the database. Raises StorageError, also if it has no store, or one of another release."""
    database = Database(url, migrates=False)
    await _require_usable(database)
    await database.open()
    try:
        yield Opened(
            database=database,
            books=PostgresBooks(database),
            jobs=PostgresJobs(database),
            records=PostgresPersonRecords(database),
        )
    finally:
        await database.close()


async def _require_usable(database: Database) -> None:
    try:
        connection = await database.connect(readonly=True)
        try:
            found = await store_format(connection, STEPS)
        finally:
            await connection.close()
    except Exception as error:
        raise as_storage_error(error, database.place) from error
    if not found.version:
        raise StorageError(f"{database.place}: there is no store yet; the gateway makes it when it starts")
    if not found.is_usable:
        raise StorageError(too_old(database.place, found))
    if found.version < formats_of(STEPS).oldest:
        raise StorageError(
            f"{database.place} was last used by an older release of Parlour; restart the gateway with this "
            "one first"
        )
