"""Bring a database towards the newest schema, one step after another, by one process at a time.

A step that takes away what older programs use is left for later while a process of such a program is alive.
The steps are in `migration_steps.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.storage.formats import StoreFormat, too_old
from gateway.storage.postgres.call_queue import Connection
from gateway.storage.postgres.format_tables import UNREPORTED
from gateway.storage.postgres.migration_steps import MigrationStep
from pipeline.domain.errors import StorageError

_LOCK = 0x5061726C6F7572
"""The key of the advisory lock ("Parlour") that only one migrating process can hold."""
_OLDEST = 160_000
_OLDEST_NAME = "16"
# Tables and columns that an older schema lacks: `to_jsonb` reads a row without naming them.
_EXISTS: Final = "SELECT to_regclass($1) IS NOT NULL"
_VERSION: Final = """
    SELECT version, coalesce((to_jsonb(s)->>'oldest')::integer, version) AS oldest
    FROM parlour.schema_version AS s"""
_KEEP_OLDEST: Final = "UPDATE schema_version SET oldest = greatest(oldest, $1)"
_KEEP_VERSION: Final = "UPDATE schema_version SET version = $1"
_OLDER: Final = f"""
    SELECT name, version, coalesce((to_jsonb(o)->>'newest_format')::integer, {UNREPORTED}) AS format
    FROM owners AS o
    WHERE expires_at > extract(epoch FROM clock_timestamp())
        AND coalesce((to_jsonb(o)->>'newest_format')::integer, {UNREPORTED}) < $1
    ORDER BY name"""  # noqa: S608 - a number of ours
# What waits for a table holds up every process that needs it, so not for long: a dump may have it for hours.
_WAIT: Final = "SET LOCAL lock_timeout = '10s'"


async def migrate(
    connection: Connection, place: str, steps: Sequence[MigrationStep], *, alone: bool = False
) -> StoreFormat:
    """Apply the missing steps inside the caller's transaction, up to the first that has to wait for a living
    process; how far it came. `alone` says that no other process can be alive.

    Raises StorageError for a server that is too old, and for a schema that `steps` cannot be used with.
    """
    server = int(await connection.fetchval("SELECT current_setting('server_version_num')"))
    if server < _OLDEST:
        raise StorageError(
            f"{place}: Postgres {server // 10_000} is too old; version {_OLDEST_NAME} or newer is needed"
        )
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    found = await store_format(connection, steps)
    if not found.is_usable:
        raise StorageError(too_old(place, found))
    if not found.waiting:
        return found
    if not found.version:
        await connection.execute("CREATE SCHEMA IF NOT EXISTS parlour")
        await connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
        await connection.execute("INSERT INTO schema_version VALUES (0)")
    await connection.execute(_WAIT)
    held_by: tuple[str, ...] = ()
    version = found.version
    for step in steps[version:]:
        if step.oldest and not alone and (held_by := await _older(connection, step.oldest)):
            break
        for statement in step.statements:
            await connection.execute(statement)
        version += 1
        if step.oldest:
            await connection.execute(_KEEP_OLDEST, step.oldest)
    await connection.execute(_KEEP_VERSION, version)
    now = await store_format(connection, steps)
    return StoreFormat(version=now.version, oldest=now.oldest, newest=now.newest, held_by=held_by)


async def store_format(connection: Connection, steps: Sequence[MigrationStep]) -> StoreFormat:
    """How far the database is; version 0 for one that Parlour has never opened."""
    if not await connection.fetchval(_EXISTS, "parlour.schema_version"):
        return StoreFormat(version=0, oldest=0, newest=len(steps))
    row = await connection.fetchrow(_VERSION)
    assert row is not None  # noqa: S101 - the table is made with its row
    return StoreFormat(version=row["version"], oldest=row["oldest"], newest=len(steps))


async def settled_format(connection: Connection, steps: Sequence[MigrationStep]) -> StoreFormat:
    """The same, after a migration that runs now in another process."""
    await connection.execute("SELECT pg_advisory_xact_lock_shared($1)", _LOCK)
    return await store_format(connection, steps)


async def _older(connection: Connection, oldest: int) -> tuple[str, ...]:
    """The living processes whose programs have a format before `oldest`."""
    if not await connection.fetchval(_EXISTS, "parlour.owners"):
        return ()
    rows = await connection.fetch(_OLDER, oldest)
    return tuple(f"{row['name']} (version {row['version']}, format {row['format']})" for row in rows)
