"""SQL on the inbox. Runs in a DatabaseThread."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from gateway.storage.inbox_items import item_of
from gateway.storage.json_bodies import SEALED_TEXT, decode_body, encode_body
from gateway.storage.ports import Accepted, InboxEntry, Lease, NewEntry, Outcome
from gateway.storage.sealing import new_key, sealed
from gateway.storage.sqlite import seals, threads
from gateway.storage.sqlite.secure_overwrite import filled
from pipeline.domain.errors import AlreadyDone

_PLACE = """
    SELECT id, (SELECT count(*) FROM inbox WHERE thread = t.id AND outcome IS NULL),
        off_record OR EXISTS (SELECT 1 FROM inbox WHERE thread = t.id AND seals = 1 AND outcome IS NULL)
    FROM threads AS t WHERE key = ?"""
# Not one statement that also returns what it wrote: that takes SQLite half as long again.
_ACCEPT = """
    INSERT INTO inbox (dedupe_key, thread, message_id, kind, body, received_at, attempts, seals)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (dedupe_key) DO NOTHING"""
_KNOWN = "SELECT seq, message_id FROM inbox WHERE dedupe_key = ?"
_OPEN_THREADS = """
    SELECT key FROM threads JOIN
        (SELECT thread, min(seq) AS first FROM inbox WHERE outcome IS NULL GROUP BY thread) ON thread = id
    ORDER BY first"""
OPEN_ENTRIES = """
    SELECT seq, message_id, kind, body, received_at, attempts, excused, cancelled, joined, steered
    FROM inbox WHERE thread = (SELECT id FROM threads WHERE key = ?) AND outcome IS NULL
    ORDER BY seq LIMIT ?"""
_NEWEST = """
    SELECT key, message_id, body FROM inbox JOIN threads ON id = thread ORDER BY seq DESC LIMIT ?"""
_START_ATTEMPT = """
    UPDATE inbox SET attempts = attempts + 1 WHERE seq = ? AND thread = ? AND outcome IS NULL
    RETURNING attempts"""
_DISCOUNT_ATTEMPT = """
    UPDATE inbox SET excused = min(attempts, excused + 1) WHERE seq = ? AND thread = ? AND outcome IS NULL"""
_CANCEL = """
    UPDATE inbox SET cancelled = 1
    WHERE thread = (SELECT id FROM threads WHERE key = ?)
        AND outcome IS NULL AND cancelled = 0 AND seq BETWEEN ? AND ?"""
_FINISH = """
    UPDATE inbox SET outcome = ?, finished_at = ?
    WHERE seq = ? AND outcome IS NULL AND thread = (SELECT id FROM threads WHERE key = ?)"""
_FINISH_FENCED = _FINISH.removesuffix(")") + " AND fence = ? AND owner = ?) RETURNING thread"
_SIZE = "SELECT length(CAST(body AS BLOB)) FROM inbox WHERE seq = ?"
_REPLACE_BODY = "UPDATE inbox SET body = ? WHERE seq = ?"
_GREATEST_SEQ = 2**63 - 1


def accept(
    db: sqlite3.Connection, entry: NewEntry, body: str, limit: int | None, *, begin: bool = False
) -> Accepted:
    """Enqueue the entry, or return the entry that was enqueued under its dedupe key before."""
    place = db.execute(_PLACE, (entry.thread,)).fetchone()
    if place is None:
        threads.add(db, entry.thread)
        place = db.execute(_PLACE, (entry.thread,)).fetchone()
    thread, unfinished, sealing = place
    if limit is None or unfinished < limit:
        begun, key = begin and not unfinished, new_key() if sealing else b""
        body = encode_body(sealed(entry.body, key)) if key else body
        known = (entry.dedupe_key, thread, entry.message_id, entry.kind)
        cursor = db.execute(_ACCEPT, (*known, body, entry.received_at, begun, entry.seals))
        if cursor.rowcount == 1 and cursor.lastrowid is not None:
            if key:
                seals.put(db, entry.message_id, entry.thread, key)
            return Accepted(
                seq=cursor.lastrowid,
                message_id=entry.message_id,
                duplicate=False,
                begun=begun,
                sealed=bool(key),
            )
    known = db.execute(_KNOWN, (entry.dedupe_key,)).fetchone()
    if known is None:
        return Accepted(seq=0, message_id=entry.message_id, duplicate=False, full=True)
    return Accepted(seq=known[0], message_id=known[1], duplicate=True)


def is_known(db: sqlite3.Connection, dedupe_key: str) -> bool:
    """Whether an entry was ever accepted under the key."""
    return db.execute(_KNOWN, (dedupe_key,)).fetchone() is not None


def open_threads(db: sqlite3.Connection) -> tuple[str, ...]:
    """Keys of the threads that have unfinished entries, longest waiting first."""
    return tuple(key for (key,) in db.execute(_OPEN_THREADS))


def _readable(db: sqlite3.Connection, message_id: str, body: str) -> dict[str, Any]:
    return seals.readable(db, message_id, body) if body.startswith(SEALED_TEXT) else decode_body(body)


def open_entries(db: sqlite3.Connection, thread: str, *, limit: int = -1) -> tuple[InboxEntry, ...]:
    """The oldest `limit` unfinished entries; all of them when it is negative."""
    return tuple(
        InboxEntry(
            seq=seq,
            thread=thread,
            message_id=message_id,
            kind=kind,
            body=(plain := _readable(db, message_id, body)),
            item=item_of(kind, thread, message_id, received_at, plain),
            received_at=received_at,
            attempts=attempts,
            excused=excused,
            cancelled=bool(cancelled),
            joined=joined,
            steered=bool(steered),
            sealed=body.startswith(SEALED_TEXT),
        )
        for (
            seq,
            message_id,
            kind,
            body,
            received_at,
            attempts,
            excused,
            cancelled,
            joined,
            steered,
        ) in db.execute(OPEN_ENTRIES, (thread, limit)).fetchall()
    )


def newest(db: sqlite3.Connection, limit: int) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Thread and body of the newest entries, finished ones included, newest first."""
    found = db.execute(_NEWEST, (limit,)).fetchall()
    return tuple((thread, _readable(db, name, body)) for thread, name, body in found)


def start_attempt(db: sqlite3.Connection, lease: Lease, seq: int) -> int:
    """Count one attempt; the new count. Raises FenceLost, or AlreadyDone for a finished entry."""
    thread = threads.require_fence(db, lease)
    row = db.execute(_START_ATTEMPT, (seq, thread)).fetchone()
    if row is None:
        raise _not_unfinished(seq)
    return int(row[0])


def discount_attempt(db: sqlite3.Connection, lease: Lease, seq: int) -> None:
    """Count one attempt as interrupted from outside. Raises FenceLost, or AlreadyDone."""
    thread = threads.require_fence(db, lease)
    if db.execute(_DISCOUNT_ATTEMPT, (seq, thread)).rowcount == 0:
        raise _not_unfinished(seq)


def cancel_open(db: sqlite3.Connection, thread: str, up_to_seq: int | None, from_seq: int) -> int:
    """Mark unfinished entries cancelled; how many were not marked before."""
    last = _GREATEST_SEQ if up_to_seq is None else up_to_seq
    return db.execute(_CANCEL, (thread, from_seq, last)).rowcount


def finish(db: sqlite3.Connection, thread: str, seq: int, outcome: Outcome, at: float) -> None:
    """Close the entry. Raises AlreadyDone if it is closed already or belongs to another thread."""
    if db.execute(_FINISH, (outcome, at, seq, thread)).rowcount == 0:
        raise _not_unfinished(seq)


def finish_leased(db: sqlite3.Connection, lease: Lease, seq: int, outcome: Outcome, at: float) -> int:
    """As `finish`, for an entry of the lease's thread, whose short id is returned. Raises FenceLost if the
    lease is no longer current."""
    values = (outcome, at, seq, lease.thread, lease.fence, lease.owner)
    row = db.execute(_FINISH_FENCED, values).fetchone()
    if row is None:
        threads.require_fence(db, lease)
        raise _not_unfinished(seq)
    return int(row[0])


def replace_body(db: sqlite3.Connection, seq: int, body: str) -> None:
    """Replace the entry's body by `body` and erase the old one. Call it before any other write to the row:
    when the row's size changes, SQLite may copy the old text elsewhere in the file."""
    for (size,) in db.execute(_SIZE, (seq,)).fetchall():
        db.execute(_REPLACE_BODY, (filled(body, size), seq))


def _not_unfinished(seq: int) -> AlreadyDone:
    return AlreadyDone(f"inbox entry {seq} is not an unfinished entry of this thread")
