"""Store files that cost a test little: a new one is a copy of one with all tables, and no commit waits for
the disk.

`install` puts `open_quickly` in the place of `open_writer`, through which each `SqliteStore` writes. The end
of a process loses nothing thereby, only a power cut could. Not for tests of the file itself: those in
`tests/gateway/storage` open their files as a user's gateway does, and so does each process that is executed
and not forked.
"""

from __future__ import annotations

import os
import sqlite3
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.storage.sqlite import group_commit
from gateway.storage.sqlite.connection import Synchronous, open_writer


def install(patch: pytest.MonkeyPatch) -> None:
    """Open store files quickly in this process and in those that it forks, until `patch` is undone."""
    _with_all_tables()
    patch.setattr(group_commit, "open_writer", open_quickly)


def open_quickly(path: Path, *, synchronous: Synchronous) -> sqlite3.Connection:
    """As `open_writer`, which still opens and examines the file."""
    _copy(path)
    db = open_writer(path, synchronous=synchronous)
    db.execute("PRAGMA synchronous = OFF")
    return db


def _copy(path: Path) -> None:
    """Make the file if there is none; where that is not possible, `open_writer` says why."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError:
        return
    with os.fdopen(descriptor, "wb") as file:
        file.write(_with_all_tables())


@cache
def _with_all_tables() -> bytes:
    """An empty store file of the newest schema."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite3"
        open_writer(path, synchronous="NORMAL").close()
        return path.read_bytes()
