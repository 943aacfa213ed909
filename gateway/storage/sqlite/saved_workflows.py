"""SQL on saved workflow documents and their runs, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.storage.json_bodies import storable_text
from gateway.storage.saved_workflows import SavedRun, SavedSummary
from gateway.storage.sqlite.connection import as_storage_error, open_reader
from gateway.storage.sqlite.migrations import require_ours
from gateway.storage.sqlite.worker_thread import DatabaseThread

DROP_RUN: Final = "DELETE FROM workflow_runs WHERE thread = ?"
_NEWEST_OF = "SELECT coalesce(max(version), 0) FROM workflow_versions WHERE name = ?"
_ADD = "INSERT INTO workflow_versions (name, version, body, runs, saved_at) VALUES (?, ?, ?, ?, ?)"
_NEWEST = """
    SELECT name, max(version), runs, saved_at FROM workflow_versions GROUP BY name ORDER BY name"""
_VERSIONS = """
    SELECT name, version, runs, saved_at FROM workflow_versions WHERE name = ? ORDER BY version DESC"""
_TEXT = "SELECT body FROM workflow_versions WHERE name = ? AND version = ?"
_NEWEST_TEXT = "SELECT body FROM workflow_versions WHERE name = ? AND runs ORDER BY version DESC LIMIT 1"
_HAS_TABLE = "SELECT 1 FROM sqlite_schema WHERE name = 'workflow_versions'"
_DELETE = ("DELETE FROM workflow_versions WHERE name = ?", "DELETE FROM workflow_runs WHERE name = ?")
_RUN_COLUMNS = "thread, message_id, name, version, at"
_NOTE = f"""
    INSERT INTO workflow_runs ({_RUN_COLUMNS}) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (thread) DO NOTHING"""  # noqa: S608 - constants of this module
_RUN_IN = f"SELECT {_RUN_COLUMNS} FROM workflow_runs WHERE thread = ?"  # noqa: S608 - constants of this module
_RUNS_OF = f"""
    SELECT {_RUN_COLUMNS} FROM workflow_runs WHERE name = :name AND substr(thread, 1, :chars) = :threads
    ORDER BY at DESC, thread LIMIT :limit"""  # noqa: S608 - constants of this module


class SqliteSavedWorkflows:
    """Saved documents in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def save(self, name: str, text: str, *, base: int, runs: bool, at: float) -> int | None:
        def work(db: sqlite3.Connection) -> int | None:
            if db.execute(_NEWEST_OF, (name,)).fetchone()[0] != base:
                return None
            db.execute(_ADD, (name, base + 1, storable_text(text), int(runs), at))
            return base + 1

        return await self._writer().submit(work)

    async def newest(self) -> tuple[SavedSummary, ...]:
        rows = await self._reader().submit(lambda db: db.execute(_NEWEST).fetchall())
        return tuple(_summary(row) for row in rows)

    async def versions(self, name: str) -> tuple[SavedSummary, ...]:
        rows = await self._reader().submit(lambda db: db.execute(_VERSIONS, (name,)).fetchall())
        return tuple(_summary(row) for row in rows)

    async def text(self, name: str, version: int) -> str | None:
        row = await self._reader().submit(lambda db: db.execute(_TEXT, (name, version)).fetchone())
        return None if row is None else str(row[0])

    async def delete(self, name: str, *, base: int) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            if not base or db.execute(_NEWEST_OF, (name,)).fetchone()[0] != base:
                return False
            for statement in _DELETE:
                db.execute(statement, (name,))
            return True

        return await self._writer().submit(work)

    async def note_run(self, run: SavedRun) -> None:
        values = (run.thread, run.message_id, run.name, run.version, run.at)
        await self._writer().submit(lambda db: db.execute(_NOTE, values).rowcount)

    async def run_in(self, thread: str) -> SavedRun | None:
        row = await self._reader().submit(lambda db: db.execute(_RUN_IN, (thread,)).fetchone())
        return None if row is None else _run(row)

    async def runs_of(self, name: str, *, threads: str, limit: int) -> tuple[SavedRun, ...]:
        values = {"name": name, "threads": threads, "chars": len(threads), "limit": limit}
        rows = await self._reader().submit(lambda db: db.execute(_RUNS_OF, values).fetchall())
        return tuple(_run(row) for row in rows)


def saved_text(path: Path, name: str, version: int | None) -> str | None:
    """The text of a saved document in the store's file, read before the gateway opens it: that version, or
    the newest one that had no mistakes when it was saved. None if there is none. Raises StorageError."""
    if not path.is_file():
        return None
    db = open_reader(path)
    try:
        require_ours(db, path)
        # A file that an earlier release has written has no saved workflows; the gateway migrates it later.
        if not db.execute(_HAS_TABLE).fetchone():
            return None
        statement, values = (_NEWEST_TEXT, (name,)) if version is None else (_TEXT, (name, version))
        row = db.execute(statement, values).fetchone()
    except sqlite3.Error as error:
        raise as_storage_error(error, path) from error
    finally:
        db.close()
    return None if row is None else str(row[0])


def _summary(row: tuple[str, int, int, float]) -> SavedSummary:
    name, version, runs, saved_at = row
    return SavedSummary(name=name, version=version, runs=bool(runs), saved_at=saved_at)


def _run(row: tuple[str, str, str, int, float]) -> SavedRun:
    thread, message_id, name, version, at = row
    return SavedRun(thread=thread, message_id=message_id, name=name, version=version, at=at)
