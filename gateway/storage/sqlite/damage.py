"""Looking for damage in a store's file, beside whatever reads and writes it.

SQLite keeps no checksums: damage to its structure is found (pages, indexes, the free list, rows that a
constraint forbids); another letter in a text that still reads as text is not.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.storage.sqlite.connection import in_words, open_checker

_MOST_FINDINGS = 5
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


async def damage_in(path: Path) -> tuple[str, ...]:
    """What is damaged in the file, a line each, at most five; none where it is whole.

    Reads the whole file in a thread, on a connection of its own that cannot write; a cancelled call ends the
    reading first. Raises StorageError when the file cannot be looked through, which says nothing of damage.
    """
    try:
        db = await asyncio.to_thread(open_checker, path)
    except sqlite3.Error as error:
        return _told(error, path)
    reading = asyncio.get_running_loop().run_in_executor(None, _look_through, db, path)
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        db.interrupt()
        await asyncio.gather(reading, return_exceptions=True)
        raise


def _look_through(db: sqlite3.Connection, path: Path) -> tuple[str, ...]:
    with closing(db):
        try:
            # Unlike quick_check, it sees that an index and its table name the same rows.
            rows = db.execute(f"PRAGMA integrity_check({_MOST_FINDINGS})").fetchall()
        except sqlite3.Error as error:
            return _told(error, path)
    # One row may hold several lines; the first of them names a part of the file alone.
    lines = [" ".join(str(row[0]).removeprefix("*** in database main ***").split()) for row in rows]
    return () if lines == ["ok"] else tuple(lines)


def _told(error: sqlite3.Error, path: Path) -> tuple[str, ...]:
    """The error as a finding where it says that the file is damaged. Raises StorageError for any other."""
    if getattr(error, "sqlite_errorname", "").startswith(_DAMAGED):
        return (str(error),)
    raise in_words(error, path) from error
