"""What `parlour doctor` asks of a database. Changes nothing, also not its schema."""

from __future__ import annotations

import asyncpg

from gateway.storage.formats import StoreFormat
from gateway.storage.owners import ListedOwner
from gateway.storage.postgres.database import Database
from gateway.storage.postgres.entries import COUNTS
from gateway.storage.postgres.errors import as_storage_error
from gateway.storage.postgres.migration_steps import STEPS, formats_of
from gateway.storage.postgres.migrations import store_format
from gateway.storage.postgres.owners import LISTED, UNOWNED, listed_owner
from gateway.storage.sizes import StoreCounts
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass

_ABOUT = """
    SELECT current_setting('server_version_num')::integer AS server,
        extract(epoch FROM clock_timestamp())::float8 AS at,
        pg_is_in_recovery() AS standby,
        has_database_privilege(current_database(), 'CREATE') AS may_create,
        current_setting('synchronous_commit') AS synchronous"""
_COUNT_JOBS = (
    "SELECT count(*) FILTER (WHERE state = 'open'), count(*) FILTER (WHERE state = 'dead') FROM jobs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A database as it was found."""

    place: str
    """Server and database, without the password."""
    version: int
    """Of the server, such as 18."""
    format: StoreFormat
    """Its version is 0 for a database that Parlour has not opened yet."""
    clock_ahead_s: float
    """By how much the server's clock is ahead of ours, to about the duration of a round trip."""
    standby: bool
    may_create: bool
    synchronous: bool
    """Whether a commit waits for the server's disk."""
    counts: StoreCounts | None
    """None where this program cannot use the tables, or not yet."""
    jobs: tuple[int, int]
    """How many are waiting, and how many were given up."""
    owners: tuple[ListedOwner, ...] = ()
    """The processes that reported within the last day."""
    unowned: int = 0
    """Threads with work that no living process has."""


async def examined(url: str, clock: Clock) -> Examined:
    """What is found at `url`. Raises StorageError if it cannot be reached."""
    database = Database(url)
    try:
        connection = await database.connect()
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise as_storage_error(error, database.place) from error
    try:
        before = clock.now()
        about = await connection.fetchrow(_ABOUT)
        middle = (before + clock.now()) / 2
        assert about is not None  # noqa: S101 - a query without FROM has a row
        form = await store_format(connection, STEPS)
        ours = form.is_usable and form.version >= formats_of(STEPS).oldest
        counts = await connection.fetchrow(COUNTS) if ours else None
        jobs = await connection.fetchrow(_COUNT_JOBS) if ours else None
        owners = await connection.fetch(LISTED) if ours else []
        unowned = await connection.fetchval(UNOWNED) if ours else 0
    except (asyncpg.PostgresError, OSError, TimeoutError) as error:
        raise as_storage_error(error, database.place) from error
    finally:
        await connection.close(timeout=5)
    return Examined(
        place=database.place,
        version=about["server"] // 10_000,
        format=form,
        clock_ahead_s=about["at"] - middle,
        standby=about["standby"],
        may_create=about["may_create"],
        synchronous=about["synchronous"] != "off",
        counts=None if counts is None else StoreCounts(**dict(counts)),
        jobs=(0, 0) if jobs is None else (jobs[0], jobs[1]),
        owners=tuple(listed_owner(row) for row in owners),
        unowned=unowned,
    )
