"""Check a store's file for damage while it is in use.

SQLite keeps no checksums: the check finds damage to the structure (pages, indexes, the free list, rows that
violate a constraint), but not a changed letter in a text that is still valid.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from gateway.storage.sqlite.connection import as_storage_error, open_checker

_MOST_FINDINGS = 5
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


async def damage_in(path: Path) -> tuple[str, ...]:
    """The damage in the file, one line each, at most five; empty if there is none.

    Reads the whole file in a thread, on a separate connection that cannot write; a cancelled call first stops
    the reading. Raises StorageError if the file cannot be checked, which does not mean damage.
    """
    try:
        db = await asyncio.to_thread(open_checker, path)
    except sqlite3.Error as error:
        return _as_finding(error, path)
    reading = asyncio.get_running_loop().run_in_executor(None, _look_through, db, path)
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        # The reading may have ended in this moment, and closed it.
        with suppress(sqlite3.ProgrammingError):
            db.interrupt()
        await asyncio.gather(reading, return_exceptions=True)
        raise


def _look_through(db: sqlite3.Connection, path: Path) -> tuple[str, ...]:
    with closing(db):
        try:
            # Unlike quick_check, it verifies that an index and its table have the same rows.
            rows = db.execute(f"PRAGMA integrity_check({_MOST_FINDINGS})").fetchall()
        except sqlite3.Error as error:
            return _as_finding(error, path)
    # One row may hold several lines; the first of them only names a part of the file.
    lines = [" ".join(str(row[0]).removeprefix("*** in database main ***").split()) for row in rows]
    return () if lines == ["ok"] else tuple(lines)


def _as_finding(error: sqlite3.Error, path: Path) -> tuple[str, ...]:
    """The error as a finding if it means that the file is damaged. Raises StorageError for any other."""
    if getattr(error, "sqlite_errorname", "").startswith(_DAMAGED):
        return (str(error),)
    raise as_storage_error(error, path) from error
