"""SQL on the threads table: short ids, leases and the fence check. Runs in a DatabaseThread."""

from __future__ import annotations

import sqlite3

from gateway.storage.append_errors import fence_lost
from gateway.storage.ports import Lease

# SQLite compares text by its bytes, so the last code point is an upper bound for every chat id.
_SPOKEN_IN = """
    SELECT key FROM (
        SELECT t.key,
               (SELECT max(id) FROM log WHERE thread = t.id) AS newest,
               EXISTS (SELECT 1 FROM inbox WHERE thread = t.id AND outcome IS NULL) AS waits
        FROM threads t WHERE t.key >= :prefix AND t.key < :prefix || char(0x10FFFF)
            AND NOT EXISTS (SELECT 1 FROM page_chats WHERE thread = t.key AND deleted)
    ) WHERE newest IS NOT NULL OR waits
    ORDER BY newest IS NULL DESC, newest DESC LIMIT :limit"""
_INTERN = "INSERT INTO threads (key) VALUES (?) ON CONFLICT (key) DO NOTHING"
_ID = "SELECT id FROM threads WHERE key = ?"
_FENCED = "SELECT id FROM threads WHERE key = ? AND fence = ? AND owner = ?"
_ACQUIRE = """
    INSERT INTO threads (key, fence, owner, expires_at) VALUES (:key, 1, :owner, :expires_at)
    ON CONFLICT (key) DO UPDATE
        SET fence = fence + 1, owner = excluded.owner, expires_at = excluded.expires_at
        WHERE owner IS NULL OR owner = excluded.owner OR expires_at <= :now
    RETURNING fence"""
_RENEW = "UPDATE threads SET expires_at = ? WHERE key = ? AND fence = ? AND owner = ?"
_RELEASE = "UPDATE threads SET owner = NULL WHERE key = ? AND fence = ? AND owner = ?"
_BREAK = "UPDATE threads SET owner = NULL WHERE owner IS NOT NULL"


def spoken_in(db: sqlite3.Connection, prefix: str, limit: int) -> tuple[str, ...]:
    """The threads whose keys begin with `prefix`, with records or waiting entries, as `Store.threads_of`."""
    return tuple(key for (key,) in db.execute(_SPOKEN_IN, {"prefix": prefix, "limit": limit}))


def intern(db: sqlite3.Connection, key: str) -> int:
    """The short id of thread `key`, created if there is none."""
    row = db.execute(_ID, (key,)).fetchone()
    if row is None:
        db.execute(_INTERN, (key,))
        row = db.execute(_ID, (key,)).fetchone()
    return int(row[0])


def add(db: sqlite3.Connection, key: str) -> bool:
    """Give thread `key` a short id; False if it has one already."""
    return db.execute(_INTERN, (key,)).rowcount == 1


def require_fence(db: sqlite3.Connection, lease: Lease) -> int:
    """The short id of the lease's thread. Raises FenceLost if the lease is no longer current."""
    row = db.execute(_FENCED, (lease.thread, lease.fence, lease.owner)).fetchone()
    if row is None:
        raise fence_lost(lease)
    return int(row[0])


def acquire(
    db: sqlite3.Connection, thread: str, owner: str, *, expires_at: float, now: float
) -> Lease | None:
    """A lease with the next fence; None while another owner's lease has not expired."""
    values = {"key": thread, "owner": owner, "expires_at": expires_at, "now": now}
    row = db.execute(_ACQUIRE, values).fetchone()
    return None if row is None else Lease(thread=thread, owner=owner, fence=row[0], expires_at=expires_at)


def renew(db: sqlite3.Connection, lease: Lease, *, expires_at: float) -> Lease:
    """The lease with a new expiry. Raises FenceLost."""
    if db.execute(_RENEW, (expires_at, lease.thread, lease.fence, lease.owner)).rowcount == 0:
        raise fence_lost(lease)
    return Lease(thread=lease.thread, owner=lease.owner, fence=lease.fence, expires_at=expires_at)


def release(db: sqlite3.Connection, lease: Lease) -> None:
    """Release the lease if it is current."""
    db.execute(_RELEASE, (lease.thread, lease.fence, lease.owner))


def break_all(db: sqlite3.Connection) -> int:
    """Expire every lease; how many there were. The fences stay."""
    return db.execute(_BREAK).rowcount
