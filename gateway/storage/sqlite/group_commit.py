"""The write side: group commit, and checkpoints when no call waits."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from gateway.storage.sqlite.connection import Synchronous, as_storage_error, open_writer
from gateway.storage.sqlite.wal import WalMeter
from gateway.storage.sqlite.wal_room import LogRoom
from gateway.storage.sqlite.worker_thread import DatabaseCall
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

_CHECKPOINT_IDLE_FRAMES = 256
_CHECKPOINT_UNDER_LOAD_FRAMES = 8_192
_LOOK_EVERY_COMMITS = 128
_ROOM_BYTES = 9 * 1024 * 1024
"""What the log mostly has at that checkpoint under load."""


class GroupCommit:
    """Runs each batch of calls as one transaction, so that one sync to the disk serves them all.

    A failed call rolls back only its own writes. Outcomes are set only after COMMIT; if that fails, every
    call of the batch fails. A call may run twice, the second time as if it had never run: savepoints cost a
    third of a batch and almost no call fails, so a batch gets them only after one has.
    """

    def __init__(self, path: Path, *, synchronous: Synchronous) -> None:
        self._path = path
        self._synchronous: Synchronous = synchronous
        self.wal = WalMeter(path)
        self._room = LogRoom(path, most=_ROOM_BYTES)
        self.commits = 0
        self.calls = 0
        self.forgot = False
        """Data was erased, and must be removed from the write-ahead log too."""
        self.erasures = 0
        """See `Store.erasures`."""
        self.compact = False
        """Set by a call after which the file is made new, so that no gap in a page holds deleted data."""

    def connect(self) -> sqlite3.Connection:
        """The one connection that writes."""
        db = open_writer(self._path, synchronous=self._synchronous)
        self.wal.start()
        if self._synchronous == "FULL":
            self._room.open()
        return db

    def run(self, db: sqlite3.Connection, calls: list[DatabaseCall]) -> None:
        """One transaction over all `calls`."""
        try:
            db.execute("BEGIN IMMEDIATE")
            self._room.keep()
            if len(calls) == 1:
                self._run_alone(db, calls[0])
            elif not _run_together(db, calls):
                self._run_apart(db, calls)
            if db.in_transaction:
                db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            for call in calls:
                call.error = call.error or as_storage_error(error, self._path)
        self.commits += 1
        self.calls += len(calls)
        if self.compact:
            self._make_new(db, calls)
        if self.forgot:
            self._empty_log(db)
        elif self.commits % _LOOK_EVERY_COMMITS == 0 and self.wal.frames() >= _CHECKPOINT_UNDER_LOAD_FRAMES:
            self._checkpoint(db, "PASSIVE")

    def on_idle(self, db: sqlite3.Connection) -> None:
        """Copy the log into the file between writes, if the log is long enough."""
        if self.forgot:
            self._empty_log(db)
        elif self.wal.frames() >= _CHECKPOINT_IDLE_FRAMES:
            self._checkpoint(db, "PASSIVE")

    def finish(self, db: sqlite3.Connection) -> None:
        """Copy the log into the file and empty it."""
        self._room.close()
        self._checkpoint(db, "TRUNCATE")

    def erased(self) -> None:
        """Called within a call that has deleted or rewritten records of a thread's log."""
        self.forgot = True
        self.erasures += 1

    def _run_alone(self, db: sqlite3.Connection, call: DatabaseCall) -> None:
        # The only call of a transaction needs no savepoint: the transaction itself is rolled back.
        try:
            call.result = call.work(db)
        except Exception as error:  # noqa: BLE001 - handed to the caller through its future
            call.error = self._as_store_error(error)
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _run_apart(self, db: sqlite3.Connection, calls: list[DatabaseCall]) -> None:
        """Begin again, with a savepoint for each call."""
        if db.in_transaction:
            db.execute("ROLLBACK")
        db.execute("BEGIN IMMEDIATE")
        for call in calls:
            self._run_beside_others(db, call)

    def _run_beside_others(self, db: sqlite3.Connection, call: DatabaseCall) -> None:
        db.execute("SAVEPOINT call")
        try:
            call.result = call.work(db)
        except Exception as error:
            call.error = self._as_store_error(error)
            if not db.in_transaction:
                # On a full disk SQLite can roll back the whole transaction, with the other calls' writes.
                raise
            db.execute("ROLLBACK TO call")
        db.execute("RELEASE call")

    def _as_store_error(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.Error):
            return as_storage_error(error, self._path)
        if isinstance(error, UnicodeEncodeError | OverflowError):
            return StorageError(f"a value cannot be stored: {error}")
        return error

    def _make_new(self, db: sqlite3.Connection, calls: list[DatabaseCall]) -> None:
        """Copy all data into a new file in place of this one. If that fails, so do the calls, which are
        repeated."""
        self.compact, self.forgot = False, True
        try:
            # The copy that SQLite makes first, a file outside the data folder, holds no deleted data.
            db.execute("VACUUM")
        except sqlite3.Error as error:
            for call in calls:
                call.error = call.error or as_storage_error(error, self._path)

    def _empty_log(self, db: sqlite3.Connection) -> None:
        """Copy the log into the file and truncate it; tried again in `on_idle` if a reader prevents it."""
        self.forgot = not self._checkpoint(db, "TRUNCATE")

    def _checkpoint(self, db: sqlite3.Connection, mode: str) -> bool:
        """Run a checkpoint; returns whether it completed."""
        self.wal.note()
        try:
            busy = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0]
        except sqlite3.Error as error:
            # No data is lost: it stays in the log, and the next checkpoint tries again.
            _log.warning("checkpoint put off: %s", as_storage_error(error, self._path))
            return False
        return not busy


def _run_together(db: sqlite3.Connection, calls: list[DatabaseCall]) -> bool:
    """Run the calls one after the other; False once one fails, in which case none counts."""
    try:
        for call in calls:
            call.result = call.work(db)
    except Exception:  # noqa: BLE001 - it is run again, and its error handed to its caller then
        return False
    return True
