"""SQL for maintenance: whether the store is writable, and how much it holds."""

from __future__ import annotations

import sqlite3

from gateway.storage.sizes import StoreCounts

_FILLER_BYTES = 8_192
"""More than a page, so that the probe needs new pages and not just a gap in one."""

_COUNTS = """SELECT
    (SELECT count(*) FROM inbox WHERE outcome IS NULL),
    (SELECT count(*) FROM inbox),
    (SELECT count(*) FROM outbox WHERE state IN ('ready', 'sending')),
    (SELECT count(*) FROM log)"""


def write(db: sqlite3.Connection) -> None:
    """Write a probe row."""
    db.execute("INSERT OR REPLACE INTO probe (n, filler) VALUES (1, zeroblob(?))", (_FILLER_BYTES,))


def take_back(db: sqlite3.Connection) -> None:
    """Remove the probe row."""
    db.execute("DELETE FROM probe")


def counts(db: sqlite3.Connection) -> StoreCounts:
    """The number of rows in the tables."""
    inbox_open, inbox_all, outbox_open, records = db.execute(_COUNTS).fetchone()
    return StoreCounts(
        inbox_open=inbox_open, inbox_done=inbox_all - inbox_open, outbox_open=outbox_open, records=records
    )
