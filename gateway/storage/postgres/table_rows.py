"""The rows of all tables of a Postgres database, to copy them into another store, or from one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.errors import as_storage_error
from gateway.storage.postgres.migration_steps import STEPS
from gateway.storage.postgres.migrations import migrate
from gateway.storage.table_copies import TABLES, Kind, Row, TableShape
from pipeline.domain.errors import StorageError

_AT_ONCE = 1_000
_KINDS: Final[Mapping[str, Kind]] = {
    "bigint": "whole",
    "integer": "whole",
    "double precision": "real",
    "boolean": "flag",
    "text": "text",
    "bytea": "bytes",
}
# Not which process has claimed a job: it is gone when a copy is made.
_COLUMNS = """
    SELECT column_name, data_type, is_identity = 'YES' AS counts FROM information_schema.columns
    WHERE table_schema = 'parlour' AND table_name = $1 AND (table_name, column_name) <> ('jobs', 'claimed_by')
    ORDER BY ordinal_position"""
# Connections of gateways and of commands, by the name that they give themselves.
_OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'parlour' AND pid <> pg_backend_pid()"""
_USED = "SELECT EXISTS (SELECT 1 FROM {table})"
_USED_AUDIT = "SELECT EXISTS (SELECT 1 FROM audit_head WHERE n > 0)"
_LAST_ID = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass), 0)"
_SET_ID = """
    SELECT setval(pg_get_serial_sequence($1, $2), greatest($3, 1), $3 > 0)"""


class PostgresTables:
    """The tables of one database, in one transaction that nothing else of Parlour runs beside."""

    def __init__(
        self, connection: Connection, shapes: Mapping[str, TableShape], ids: Mapping[str, str]
    ) -> None:
        self._connection = connection
        self.shapes = shapes
        self._ids = ids
        """The column whose values are counted up, by table."""

    async def rows(self, shape: TableShape) -> AsyncIterator[Sequence[Row]]:
        """All rows, some at a time."""
        names = ", ".join(f'"{column}"' for column in shape.columns)
        cursor = await self._connection.cursor(f"SELECT {names} FROM {shape.name}")  # noqa: S608 - names of our tables
        while rows := await cursor.fetch(_AT_ONCE):
            yield [tuple(row) for row in rows]

    async def filled(self) -> str:
        """The name of a table that has rows; empty if none has."""
        for table in TABLES:
            statement = _USED_AUDIT if table == "audit_head" else _USED.format(table=table)
            if await self._connection.fetchval(statement):
                return table
        return ""

    async def empty(self, table: str) -> None:
        """Delete the rows that a new table has."""
        await self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of our tables

    async def add(self, shape: TableShape, rows: Sequence[Row]) -> None:
        """Insert rows."""
        await self._connection.copy_records_to_table(
            shape.name, schema_name="parlour", columns=list(shape.columns), records=rows
        )

    async def last_ids(self) -> Mapping[str, int]:
        """The last id of each table whose ids are counted up."""
        return {
            table: int(await self._connection.fetchval(_LAST_ID, f"parlour.{table}", column))
            for table, column in self._ids.items()
        }

    async def finish(self, last_ids: Mapping[str, int]) -> None:
        """Let new ids follow those that were inserted, and those of `last_ids`, by table."""
        for table, column in self._ids.items():
            greatest = f'SELECT coalesce(max("{column}"), 0) FROM {table}'  # noqa: S608 - names of our tables
            last = max(await self._connection.fetchval(greatest), last_ids.get(table, 0))
            await self._connection.execute(_SET_ID, f"parlour.{table}", column, last)


@asynccontextmanager
async def database_tables(url: str) -> AsyncIterator[PostgresTables]:
    """The tables of the database, which is brought to the newest schema. What is written is committed at the
    end of the block, or nothing is; no gateway can start meanwhile. Raises StorageError, also while a gateway
    or a command uses the database."""
    database = Database(url)
    try:
        connection = await database.connect()
        try:
            async with connection.transaction():
                # It holds a lock that every starting gateway waits for.
                await migrate(connection, database.place, STEPS, alone=True)
                if await connection.fetchval(_OTHERS):
                    raise StorageError(
                        f"{database.place}: a gateway or another command uses this database; stop it first"
                    )
                yield await _tables(connection)
        finally:
            await connection.close()
    except Exception as error:
        raise as_storage_error(error, database.place) from error


async def _tables(connection: Connection) -> PostgresTables:
    shapes: dict[str, TableShape] = {}
    ids: dict[str, str] = {}
    for table in TABLES:
        found = await connection.fetch(_COLUMNS, table)
        shapes[table] = TableShape(
            name=table,
            columns=tuple(row["column_name"] for row in found),
            kinds=tuple(_KINDS[row["data_type"]] for row in found),
        )
        ids.update((table, row["column_name"]) for row in found if row["counts"])
    return PostgresTables(connection, shapes, ids)
