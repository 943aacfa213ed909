"""The rows of all tables of a SQLite file, to copy them into another store, or from one into a new file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateway.storage.json_bodies import FORGOTTEN
from gateway.storage.sqlite.connection import as_storage_error, open_writer
from gateway.storage.table_copies import Row, TableShape

_AT_ONCE = 1_000
_IDS = "SELECT name, seq FROM sqlite_sequence"
_SET_ID = "UPDATE sqlite_sequence SET seq = ? WHERE name = ? AND seq < ?"
_NEW_ID = (
    "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? WHERE ? NOT IN (SELECT name FROM sqlite_sequence)"
)
_INDEX = """
    INSERT INTO memory_index (rowid, terms) SELECT n, terms FROM memory_facts WHERE live = 1 ORDER BY n"""
# The next id is one more than the greatest, and clients know ids: a row without a text holds the place.
_PLACE = """
    INSERT INTO log (id, thread, kind, session_id, message_id, body, at)
    SELECT ?1, min(id), 'notice', '', '', ?2, 0 FROM threads
    WHERE (SELECT coalesce(max(id), 0) FROM log) < ?1 HAVING count(*) > 0"""


class SqliteTables:
    """The tables of one file, in one transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns."""
        return frozenset(row[1] for row in self._db.execute(f"PRAGMA table_info({table})"))

    def rows(self, shape: TableShape) -> Iterator[Sequence[Row]]:
        """All rows, some at a time."""
        cursor = self._db.execute(f"SELECT {_names(shape)} FROM {shape.name}")  # noqa: S608 - names of our tables
        while rows := cursor.fetchmany(_AT_ONCE):
            yield rows

    def empty(self, table: str) -> None:
        """Delete the rows that a new table has."""
        self._db.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of our tables

    def add(self, shape: TableShape, rows: Sequence[Row]) -> None:
        """Insert rows."""
        places = ", ".join("?" * len(shape.columns))
        self._db.executemany(f"INSERT INTO {shape.name} ({_names(shape)}) VALUES ({places})", rows)  # noqa: S608 - as above

    def last_ids(self) -> Mapping[str, int]:
        """The last id of each table whose ids are never used twice."""
        return dict(self._db.execute(_IDS).fetchall())

    def finish(self, last_ids: Mapping[str, int]) -> None:
        """Fill the index of memories, and let new ids follow those of `last_ids`, by table."""
        self._db.execute(_INDEX)
        for name, last in last_ids.items():
            self._db.execute(_SET_ID, (last, name, last))
            if name in ("jobs", "file_changes", "permissions"):
                self._db.execute(_NEW_ID, (name, last, name))
        if last := last_ids.get("log", 0):
            self._db.execute(_PLACE, (last, FORGOTTEN))


@contextmanager
def file_tables(path: Path) -> Iterator[SqliteTables]:
    """The tables of the file `path`, which is made if needed and brought to the newest schema. What is
    written is committed at the end of the block, or nothing is. Raises StorageError."""
    db = open_writer(path, synchronous="FULL")
    # A damaged line of the audit may not be text.
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        db.execute("BEGIN IMMEDIATE")
        yield SqliteTables(db)
        db.execute("COMMIT")
        # Everything into the file, which is then moved alone.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        raise as_storage_error(error, path) from error
    finally:
        # An open transaction is rolled back.
        db.close()


def _names(shape: TableShape) -> str:
    return ", ".join(f'"{column}"' for column in shape.columns)
