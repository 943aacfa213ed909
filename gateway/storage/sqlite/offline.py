"""Write into a store's file while the gateway uses it, for CLI commands.

It changes no schema, makes no checkpoints and locks the file only for single short transactions; the gateway
sees the changes with its next read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from gateway.storage.sqlite.connection import as_storage_error, open_beside
from gateway.storage.sqlite.worker_thread import DatabaseCall, DatabaseThread
from pipeline.domain.errors import StorageError

Book = TypeVar("Book")
_Thread = Callable[[], DatabaseThread]


@asynccontextmanager
async def beside(path: Path, book: Callable[[_Thread, _Thread], Book]) -> AsyncIterator[Book]:
    """A part of the store in the file `path`, such as `SqliteJobs`. Raises StorageError if there is no such
    store."""
    thread = DatabaseThread("store-beside", _Beside(path))
    await thread.start()
    try:
        yield book(lambda: thread, lambda: thread)
    finally:
        await thread.stop()


class _Beside:
    """Runs each call as a separate transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def connect(self) -> sqlite3.Connection:
        if not self._path.is_file():
            raise StorageError(
                f"{self._path.absolute()}: there is no store yet; the gateway makes it when it starts. If it "
                "runs, use the same folder and the same --config"
            )
        return open_beside(self._path)

    def run(self, db: sqlite3.Connection, calls: list[DatabaseCall]) -> None:
        for call in calls:
            try:
                db.execute("BEGIN IMMEDIATE")
                call.result = call.work(db)
                db.execute("COMMIT")
            except Exception as error:  # noqa: BLE001 - handed to the caller through its future
                if db.in_transaction:
                    db.execute("ROLLBACK")
                call.error = (
                    as_storage_error(error, self._path) if isinstance(error, sqlite3.Error) else error
                )

    def on_idle(self, db: sqlite3.Connection) -> None:
        """Does nothing: the gateway makes the checkpoints."""

    def finish(self, db: sqlite3.Connection) -> None:
        """Nothing to finish."""
