"""The read side: one connection that cannot write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from gateway.storage.sqlite.connection import in_words, open_reader
from gateway.storage.sqlite.worker_thread import Call


class Reading:
    """Runs reads one by one on a connection that cannot write."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def connect(self) -> sqlite3.Connection:
        """The one connection that reads."""
        return open_reader(self._path)

    def run(self, db: sqlite3.Connection, calls: list[Call]) -> None:
        """Each call by itself; every one sees all that was committed before it was submitted."""
        for call in calls:
            try:
                call.result = call.work(db)
            except sqlite3.Error as error:
                call.error = in_words(error, self._path)
            except Exception as error:  # noqa: BLE001 - handed to the caller through its future
                call.error = error

    def rest(self, db: sqlite3.Connection) -> None:
        """Nothing to tidy up."""

    def finish(self, db: sqlite3.Connection) -> None:
        """Nothing to finish."""
