"""Write every table again, so that none holds a row that was deleted or changed before."""

from __future__ import annotations

from gateway.storage.postgres.database import Database
from gateway.storage.postgres.errors import as_storage_error

_TABLES = (
    "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'parlour' ORDER BY 1"
)
# Every other call waits behind one that waits for a table, so not for long.
_WAIT = "SET lock_timeout = '20s'"
_LONGEST_S = 3_600.0


async def compact(database: Database) -> None:
    """Takes time in proportion to each table, which nothing can use meanwhile. Raises StorageError, also
    where another program, such as a dump, holds a table for long: repeat it then."""
    try:
        connection = await database.connect()
        try:
            await connection.execute(_WAIT)
            for (table,) in await connection.fetch(_TABLES):
                await connection.execute(f"VACUUM (FULL) {table}", timeout=_LONGEST_S)
        finally:
            await connection.close()
    except Exception as error:
        raise as_storage_error(error, database.place) from error
