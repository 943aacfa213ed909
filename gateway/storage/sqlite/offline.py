"""Writing into a store's file beside the gateway that works on it, for a person at a terminal.

It changes no schema, makes no checkpoints and holds the file for single short transactions; the gateway
sees what was written with its next read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.storage.sqlite.connection import in_words, open_beside
from gateway.storage.sqlite.pairings import SqlitePairings
from gateway.storage.sqlite.worker_thread import Call, DatabaseThread
from pipeline.domain.errors import StorageError


@asynccontextmanager
async def pairings_beside(path: Path) -> AsyncIterator[SqlitePairings]:
    """The pairing book in the store's file `path`. Raises StorageError when there is no such store."""
    lane = DatabaseThread("store-beside", _Beside(path))
    await lane.start()
    try:
        yield SqlitePairings(lambda: lane, lambda: lane)
    finally:
        await lane.stop()


class _Beside:
    """Runs each call as a transaction of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def connect(self) -> sqlite3.Connection:
        if not self._path.is_file():
            raise StorageError(
                f"{self._path.absolute()}: there is no store yet; the gateway makes it when it starts. If it "
                "runs, use the same folder and the same --config"
            )
        return open_beside(self._path)

    def run(self, db: sqlite3.Connection, calls: list[Call]) -> None:
        for call in calls:
            try:
                db.execute("BEGIN IMMEDIATE")
                call.result = call.work(db)
                db.execute("COMMIT")
            except Exception as error:  # noqa: BLE001 - handed to the caller through its future
                if db.in_transaction:
                    db.execute("ROLLBACK")
                call.error = in_words(error, self._path) if isinstance(error, sqlite3.Error) else error

    def rest(self, db: sqlite3.Connection) -> None:
        """Nothing to tidy up: checkpoints are the gateway's."""

    def finish(self, db: sqlite3.Connection) -> None:
        """Nothing to finish."""
