"""What the SQLite tests share: looking into a file from outside, and holding the writer back."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.worker_thread import Work


def look(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows of `sql` on a separate connection."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def submit(store: SqliteStore, work: Work[Any]) -> Any:
    """A future for `work`, run by the store's writer like any of its calls."""
    return store._writer.submit(work)


@contextmanager
def writer_held_back(store: SqliteStore) -> Iterator[None]:
    """Calls made inside form one batch: the writer is busy until the block ends."""
    entered, release = threading.Event(), threading.Event()

    def wait(_: sqlite3.Connection) -> None:
        entered.set()
        release.wait(60)

    submit(store, wait)
    # The loop does not run meanwhile, so what it would hand over at the end of its pass is handed over here.
    store._writer._hand_over()
    assert entered.wait(60)
    try:
        yield
    finally:
        store._writer._hand_over()
        release.set()


def bytes_written(store: SqliteStore) -> int:
    """Bytes written to the write-ahead log since the store was opened: page images and frame headers,
    without the later copy into the file by checkpoints."""
    return store._group_commit.wal.total()
