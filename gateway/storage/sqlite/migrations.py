"""Migrate a file to the newest schema, and check that it is ours to change.

The steps are in `migration_steps.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from gateway.storage.sqlite.migration_steps import MIGRATIONS
from pipeline.domain.errors import StorageError

APPLICATION_ID = 0x5061726C
"""Stored in the file's header ("Parl"), so that `file` and other programs can identify it."""


def require_ours(db: sqlite3.Connection, path: Path) -> None:
    """Raise StorageError unless the file is empty or was made by this program."""
    found = _pragma(db, "application_id")
    if found == APPLICATION_ID:
        return
    tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if found or tables:
        raise StorageError(
            f"{path} is a database of another program; move it away, or point the data folder elsewhere"
        )


def migrate(db: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]] = MIGRATIONS) -> int:
    """Migrate the file to the newest schema, each step in its own transaction; the version reached.

    Raises StorageError if the file's schema is newer than `steps`.
    """
    version = _pragma(db, "user_version")
    if version > len(steps):
        raise StorageError(
            f"{path} has schema version {version}, and this program knows versions up to {len(steps)}: "
            "it was written by a newer release. Install that release again, or restore the backup "
            "made before the upgrade"
        )
    for number, statements in enumerate(steps[version:], start=version + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    return len(steps)


def require_current(db: sqlite3.Connection, path: Path) -> None:
    """Raise StorageError unless the file is ours and has the schema of this program."""
    require_ours(db, path)
    if _pragma(db, "user_version") != len(MIGRATIONS):
        raise StorageError(
            f"{path} was last used by another release of Parlour; restart the gateway with this one first"
        )


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
