"""Bring a database to the newest schema, one step after another, by one process at a time."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.storage.postgres.call_queue import Connection
from pipeline.domain.errors import StorageError

_LOCK = 0x5061726C6F7572
"""The key of the advisory lock ("Parlour") that only one migrating process can hold."""
_OLDEST = 160_000
_OLDEST_NAME = "16"


async def migrate(connection: Connection, place: str, steps: Sequence[Sequence[str]]) -> int:
    """Apply the missing steps inside the caller's transaction; the version reached.

    Raises StorageError for a server that is too old, and for a schema that is newer than `steps`.
    """
    server = int(await connection.fetchval("SELECT current_setting('server_version_num')"))
    if server < _OLDEST:
        raise StorageError(
            f"{place}: Postgres {server // 10_000} is too old; version {_OLDEST_NAME} or newer is needed"
        )
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    version = await schema_version(connection)
    if version > len(steps):
        raise StorageError(
            f"{place} has schema version {version}, and this program knows versions up to {len(steps)}: "
            "it was written by a newer release. Install that release again, or restore the backup "
            "made before the upgrade"
        )
    if version == len(steps):
        return version
    if not version:
        await connection.execute("CREATE SCHEMA IF NOT EXISTS parlour")
        await connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
        await connection.execute("INSERT INTO schema_version VALUES (0)")
    for statements in steps[version:]:
        for statement in statements:
            await connection.execute(statement)
    await connection.execute("UPDATE schema_version SET version = $1", len(steps))
    return len(steps)


async def schema_version(connection: Connection) -> int:
    """The schema version of the database; 0 for one that Parlour has never opened."""
    if await connection.fetchval("SELECT to_regclass('parlour.schema_version')") is None:
        return 0
    return int(await connection.fetchval("SELECT version FROM parlour.schema_version"))
