"""The write side: group commit, and checkpoints at moments when nobody waits."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from gateway.storage.sqlite.connection import Synchronous, in_words, open_writer
from gateway.storage.sqlite.wal import WalMeter
from gateway.storage.sqlite.worker_thread import Call
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

_CHECKPOINT_AT_REST_FRAMES = 256
_CHECKPOINT_UNDER_LOAD_FRAMES = 8_192
_LOOK_EVERY_COMMITS = 128


class GroupCommit:
    """Runs each batch of calls as one transaction, so that one sync to the disk serves them all.

    Each call has its own savepoint: a call that fails takes back its own writes and no other's.
    Outcomes are noted only after COMMIT; when that fails, every call of the batch fails.
    """

    def __init__(self, path: Path, *, synchronous: Synchronous) -> None:
        self._path = path
        self._synchronous: Synchronous = synchronous
        self.wal = WalMeter(path)
        self.commits = 0
        self.calls = 0
        self.forgot = False
        """Set by a call that wrote over what is to be forgotten: the log must not keep it either."""

    def connect(self) -> sqlite3.Connection:
        """The one connection that writes."""
        db = open_writer(self._path, synchronous=self._synchronous)
        self.wal.start()
        return db

    def run(self, db: sqlite3.Connection, calls: list[Call]) -> None:
        """One transaction over all `calls`."""
        try:
            db.execute("BEGIN IMMEDIATE")
            if len(calls) == 1:
                self._run_alone(db, calls[0])
            else:
                for call in calls:
                    self._run_beside_others(db, call)
            if db.in_transaction:
                db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            for call in calls:
                call.error = call.error or in_words(error, self._path)
        self.commits += 1
        self.calls += len(calls)
        if self.forgot:
            self._empty_log(db)
        elif self.commits % _LOOK_EVERY_COMMITS == 0 and self.wal.frames() >= _CHECKPOINT_UNDER_LOAD_FRAMES:
            self._checkpoint(db, "PASSIVE")

    def rest(self, db: sqlite3.Connection) -> None:
        """Copy the log into the file while nobody writes, if there is enough of it."""
        if self.forgot:
            self._empty_log(db)
        elif self.wal.frames() >= _CHECKPOINT_AT_REST_FRAMES:
            self._checkpoint(db, "PASSIVE")

    def finish(self, db: sqlite3.Connection) -> None:
        """Leave one file behind, with an empty log."""
        self._checkpoint(db, "TRUNCATE")

    def _run_alone(self, db: sqlite3.Connection, call: Call) -> None:
        # The only call of a transaction needs no savepoint: the transaction itself is taken back.
        try:
            call.result = call.work(db)
        except Exception as error:  # noqa: BLE001 - handed to the caller through its future
            call.error = self._understood(error)
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _run_beside_others(self, db: sqlite3.Connection, call: Call) -> None:
        db.execute("SAVEPOINT call")
        try:
            call.result = call.work(db)
        except Exception as error:
            call.error = self._understood(error)
            if not db.in_transaction:
                # A full disk can take the whole transaction back, and with it the neighbours' writes.
                raise
            db.execute("ROLLBACK TO call")
        db.execute("RELEASE call")

    def _understood(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.Error):
            return in_words(error, self._path)
        if isinstance(error, UnicodeEncodeError | OverflowError):
            return StorageError(f"a value cannot be stored: {error}")
        return error

    def _empty_log(self, db: sqlite3.Connection) -> None:
        """Into the file with everything, and the log cut to nothing; again at rest if somebody reads now."""
        self.forgot = not self._checkpoint(db, "TRUNCATE")

    def _checkpoint(self, db: sqlite3.Connection, mode: str) -> bool:
        """Whether it came to its end."""
        self.wal.note()
        try:
            busy = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0]
        except sqlite3.Error as error:
            # Nothing is lost: the records stay in the log, and the next checkpoint tries again.
            _log.warning("checkpoint put off: %s", in_words(error, self._path))
            return False
        return not busy
