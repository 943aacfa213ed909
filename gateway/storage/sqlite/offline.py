"""Write into a store's file while the gateway uses it, for CLI commands.

It changes no schema, makes no checkpoints and locks the file only for single short transactions; the gateway
sees the changes with its next read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.storage.sqlite.audit import SqliteAudit
from gateway.storage.sqlite.connection import as_storage_error, open_beside
from gateway.storage.sqlite.feedback import SqliteFeedback
from gateway.storage.sqlite.file_changes import SqliteFileChanges
from gateway.storage.sqlite.jobs import SqliteJobs
from gateway.storage.sqlite.page_people import SqlitePagePeople
from gateway.storage.sqlite.pairings import SqlitePairings
from gateway.storage.sqlite.worker_thread import Call, DatabaseThread
from pipeline.domain.errors import StorageError


@asynccontextmanager
async def pairings_beside(path: Path) -> AsyncIterator[SqlitePairings]:
    """The pairing book in the store's file `path`. Raises StorageError if there is no such store."""
    async with _beside(path) as thread:
        yield SqlitePairings(lambda: thread, lambda: thread)


@asynccontextmanager
async def jobs_beside(path: Path) -> AsyncIterator[SqliteJobs]:
    """The job book in the store's file `path`. Raises StorageError if there is no such store."""
    async with _beside(path) as thread:
        yield SqliteJobs(lambda: thread, lambda: thread)


@asynccontextmanager
async def feedback_beside(path: Path) -> AsyncIterator[SqliteFeedback]:
    """The feedback in the store's file `path`. Raises StorageError if there is no such store."""
    async with _beside(path) as thread:
        yield SqliteFeedback(lambda: thread, lambda: thread)


@asynccontextmanager
async def file_changes_beside(path: Path) -> AsyncIterator[SqliteFileChanges]:
    """The changes of files in the store's file `path`. Raises StorageError if there is no such store."""
    async with _beside(path) as thread:
        yield SqliteFileChanges(lambda: thread, lambda: thread)


@asynccontextmanager
async def audit_beside(path: Path) -> AsyncIterator[SqliteAudit]:
    """The audit in the store's file `path`. Raises StorageError if there is no such store."""
    async with _beside(path) as thread:
        yield SqliteAudit(lambda: thread, lambda: thread)


@asynccontextmanager
async def page_people_beside(path: Path) -> AsyncIterator[SqlitePagePeople]:
    """The page's invited people in the store's file `path`. Raises StorageError if there is no such store."""
    async with _beside(path) as thread:
        yield SqlitePagePeople(lambda: thread, lambda: thread)


@asynccontextmanager
async def _beside(path: Path) -> AsyncIterator[DatabaseThread]:
    thread = DatabaseThread("store-beside", _Beside(path))
    await thread.start()
    try:
        yield thread
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

    def run(self, db: sqlite3.Connection, calls: list[Call]) -> None:
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
