"""The read side: one connection that cannot write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from gateway.storage.sqlite.connection import as_storage_error, open_reader
from gateway.storage.sqlite.worker_thread import DatabaseCall


class ReadConnection:
    """Runs reads one by one on a connection that cannot write."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def connect(self) -> sqlite3.Connection:
        """The one connection that reads."""
        return open_reader(self._path)

    def run(self, db: sqlite3.Connection, calls: list[DatabaseCall]) -> None:
        """Run each call separately; each one sees every commit from before it was submitted."""
        for call in calls:
            try:
                call.result = call.work(db)
            except sqlite3.Error as error:
                call.error = as_storage_error(error, self._path)
            except Exception as error:  # noqa: BLE001 - handed to the caller through its future
                call.error = error

    def on_idle(self, db: sqlite3.Connection) -> None:
        """Does nothing."""

    def finish(self, db: sqlite3.Connection) -> None:
        """Does nothing."""
