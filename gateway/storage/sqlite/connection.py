"""Open the file, and turn SQLite's errors into StorageErrors with advice. Not here: tables."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from gateway.storage.sqlite.migrations import migrate, require_current, require_ours
from pipeline.domain.errors import StorageError

Synchronous = Literal["NORMAL", "FULL"]

_BUSY_TIMEOUT_MS = 5_000
_OLDEST_SQLITE = (3, 37, 0)  # STRICT tables
_WAL_LIMIT_BYTES = 64 * 1024 * 1024

_WORDS = (
    ("SQLITE_FULL", "the disk is full (or the quota reached); free some space, accepted messages are safe"),
    ("SQLITE_READONLY", "the file or its folder is read-only; give this user the right to write there"),
    (
        "SQLITE_CANTOPEN",
        "the file cannot be opened; check that its folder exists and this user may write there",
    ),
    ("SQLITE_PERM", "access was denied; give this user the right to read and write there"),
    ("SQLITE_BUSY", "another program holds the database locked; close it and try again"),
    ("SQLITE_LOCKED", "another program holds the database locked; close it and try again"),
    ("SQLITE_CORRUPT", "the file is damaged; stop the gateway and restore a backup"),
    ("SQLITE_NOTADB", "the file is not a SQLite database; move it away, or point the data folder elsewhere"),
    ("SQLITE_IOERR", "the disk reported an input/output error; check the disk and the system log"),
)


def open_writer(path: Path, *, synchronous: Synchronous) -> sqlite3.Connection:
    """A connection that writes. Creates the file if needed (0600, its folder 0700) and migrates its schema.

    Raises StorageError, which names the file, if any of that fails.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        needed = ".".join(map(str, _OLDEST_SQLITE))
        raise StorageError(
            f"SQLite {sqlite3.sqlite_version} is too old; {needed} or newer is needed: "
            "upgrade Python or the system"
        )
    _create_private(path)
    with _opened(path) as db:
        require_ours(db, path)
        # Only affects a new file. A commit writes whole pages to the log; small pages cost a third.
        db.execute("PRAGMA page_size = 1024")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {synchronous}")
        # GroupCommit makes checkpoints when no call waits, not inside a commit.
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
        # Overwrite deleted data with zeros, also in the file's free pages.
        db.execute("PRAGMA secure_delete = ON")
        # The log of an earlier process may contain data that it was about to erase.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        migrate(db, path)
        return db


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, to a file that `open_writer` has prepared."""
    with _opened(path) as db:
        db.execute("PRAGMA query_only = ON")
        return db


def open_checker(path: Path) -> sqlite3.Connection:
    """A connection that cannot write and creates no file, for a thread that another one may interrupt.

    Raises sqlite3.Error unchanged, because the damage check reports it as a finding.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )


def open_beside(path: Path) -> sqlite3.Connection:
    """A connection that writes into a file that the gateway may also have open. Raises StorageError, also for
    a file with another schema version: only the gateway migrates."""
    with _opened(path) as db:
        require_current(db, path)
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA secure_delete = ON")
        return db


def as_storage_error(error: sqlite3.Error, path: Path) -> StorageError:
    """The StorageError that explains `error` to a person and says what to do."""
    name = getattr(error, "sqlite_errorname", "")
    for prefix, words in _WORDS:
        if name.startswith(prefix):
            return StorageError(f"{path}: {words}")
    return StorageError(f"{path}: the database refused: {error}")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that stays open after the block, unless the block fails. A sqlite3.Error, also of opening,
    becomes a StorageError that names the file."""
    try:
        db = _connect(path)
    except sqlite3.Error as error:
        raise as_storage_error(error, path) from error
    try:
        yield db
    except sqlite3.Error as error:
        db.close()
        raise as_storage_error(error, path) from error
    except BaseException:
        db.close()
        raise


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    db.execute("PRAGMA foreign_keys = ON")
    return db


def _create_private(path: Path) -> None:
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Only a new file is opened here: closing a descriptor of a live database would drop SQLite's own
        # locks on it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise StorageError(f"{path} is a folder; the store needs a file there") from None
        if not path.is_file():
            raise StorageError(f"{path} cannot be created: {path.parent} is not a folder") from None
    except OSError as error:
        raise StorageError(
            f"{path} cannot be created ({error.strerror}); "
            "check that its folder exists and that this user may write there"
        ) from error
