"""SQL on the per-thread log, and the turn commit that joins it to inbox and outbox."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Sequence
from typing import Any

from gateway.storage.json_bodies import SEALED_TEXT, decode_body
from gateway.storage.ports import Committed, Lease, NewOutboxRow, NewRecord, Record, RecordKind, TurnCommit
from gateway.storage.sqlite import inbox, outbox, seals, threads

EncodedRecords = Sequence[tuple[NewRecord, str]]
EncodedRows = Sequence[tuple[NewOutboxRow, str]]

# The log's only unique index conflicts for a second user record of a message, and for nothing else.
_INSERT = """
    INSERT INTO log (thread, kind, session_id, message_id, body, at)
    VALUES {rows} ON CONFLICT DO NOTHING"""
_ROW = "(?, ?, ?, ?, ?, ?)"
_MOST_ROWS = 8
"""Records of one statement; so many statements are kept prepared."""
_KNOWN_USER = """
    SELECT id FROM log WHERE thread = ?
        AND message_id = ? AND (CASE kind WHEN 'user' THEN 1 END) = 1"""
CURRENT_SESSION = """
    SELECT session_id FROM log
    WHERE thread = (SELECT id FROM threads WHERE key = ?) AND kind = 'session'
    ORDER BY id DESC LIMIT 1"""
_COLUMNS = "SELECT id, kind, session_id, message_id, body, at"


def append(
    db: sqlite3.Connection, lease: Lease, records: EncodedRecords, attempt: int | None
) -> tuple[int, ...]:
    """Add the records, and count an attempt at the entry `attempt`; their ids.

    Raises FenceLost, or StorageError for a finished entry.
    """
    if attempt is not None:
        inbox.start_attempt(db, lease, attempt)
    return _add(db, threads.require_fence(db, lease), records)


def commit_turn(
    db: sqlite3.Connection, lease: Lease, commit: TurnCommit, records: EncodedRecords, rows: EncodedRows
) -> Committed:
    """Apply `commit` inside the caller's transaction. Raises FenceLost or StorageError."""
    thread = inbox.finish_leased(db, lease, commit.seq, commit.outcome, commit.at)
    for one in commit.also:
        inbox.finish_leased(db, lease, one.seq, commit.outcome, commit.at)
    if commit.mode is not None:
        seals.set_mode(db, lease.thread, commit.mode)
    record_ids = _add(db, thread, records) if records else ()
    entry_id = record_ids[-1] if record_ids else 0
    outbox_ids = tuple(outbox.add(db, lease.thread, entry_id, row, body) for row, body in rows)
    return Committed(record_ids=record_ids, outbox_ids=outbox_ids)


def read(
    db: sqlite3.Connection,
    thread: str,
    *,
    after: int,
    before: int | None = None,
    kinds: Sequence[RecordKind] | None,
    session_id: str | None,
    message_id: str | None,
    limit: int | None,
) -> tuple[Record, ...]:
    """Records that pass all filters, oldest first; with `limit`, the newest of them."""
    if kinds is not None and not kinds:
        return ()
    sql, values = read_statement(
        thread,
        after=after,
        before=before,
        kinds=kinds,
        session_id=session_id,
        message_id=message_id,
        limit=limit,
    )
    found = [
        Record(
            id=record_id,
            thread=thread,
            kind=kind,
            session_id=session,
            message_id=message,
            body=_readable(db, kind, message, body),
            at=at,
        )
        for record_id, kind, session, message, body, at in db.execute(sql, values)
    ]
    if limit is not None:
        found.reverse()
    return tuple(found)


def _readable(db: sqlite3.Connection, kind: RecordKind, message: str, body: str) -> dict[str, Any]:
    """The body. A damaged body of a step becomes an empty one: its run can continue or restart."""
    try:
        return seals.readable(db, message, body) if body.startswith(SEALED_TEXT) else decode_body(body)
    except ValueError:
        if kind != "step":
            raise
        return {}


def read_statement(
    thread: str,
    *,
    after: int,
    before: int | None = None,
    kinds: Sequence[RecordKind] | None,
    session_id: str | None,
    message_id: str | None,
    limit: int | None,
) -> tuple[str, list[str | int]]:
    """The query of `read` and its values; newest first when there is a limit."""
    # The index is given, because SQLite has no statistics and would read the whole thread for one message.
    index = "log_thread"
    conditions = ["thread = (SELECT id FROM threads WHERE key = ?)", "id > ?"]
    values: list[str | int] = [thread, after]
    if before is not None:
        conditions.append("id < ?")
        values.append(before)
    if kinds is not None:
        conditions.append(f"kind IN ({', '.join('?' * len(kinds))})")
        values.extend(kinds)
        if "step" not in kinds:
            # Redundant, but it lets SQLite use the index without steps.
            conditions.append("kind <> 'step'")
    if session_id is not None:
        if kinds is not None and "step" not in kinds:
            index = "log_visible"
        conditions.append("session_id = ?")
        values.append(session_id)
    if message_id is not None:
        index = "log_message"
        conditions.append("message_id = ?")
        values.append(message_id)
    sql = f"{_COLUMNS} FROM log INDEXED BY {index} WHERE {' AND '.join(conditions)} ORDER BY id"
    if limit is not None:
        sql += " DESC LIMIT ?"
        values.append(max(0, limit))
    return sql, values


def current_session(db: sqlite3.Connection, thread: str) -> str | None:
    """The session of the thread's newest record of kind "session"."""
    row = db.execute(CURRENT_SESSION, (thread,)).fetchone()
    return None if row is None else str(row[0])


def _add(db: sqlite3.Connection, thread: int, records: EncodedRecords) -> tuple[int, ...]:
    """Add the records in their order; the id of each, or of the message's user record that exists already."""
    # One statement where it is clear which record may exist already: each is a hand-over between threads.
    if len(records) <= _MOST_ROWS and sum([record.kind == "user" for record, _ in records]) <= 1:
        return _add_together(db, thread, records)
    return tuple(found for one in records for found in _add_together(db, thread, (one,)))


def _add_together(db: sqlite3.Connection, thread: int, records: EncodedRecords) -> tuple[int, ...]:
    """Add records of which at most one is a user's, by one statement."""
    if not records:
        return ()
    values: list[str | float] = []
    for record, body in records:
        values += (thread, record.kind, record.session_id, record.message_id, body, record.at)
    cursor = db.execute(_insert(len(records)), values)
    if cursor.rowcount == len(records) and cursor.lastrowid is not None:
        return tuple(range(cursor.lastrowid - len(records) + 1, cursor.lastrowid + 1))
    user = next(record for record, _ in records if record.kind == "user")
    known = int(db.execute(_KNOWN_USER, (thread, user.message_id)).fetchone()[0])
    added = iter(range((cursor.lastrowid or 0) - cursor.rowcount + 1, (cursor.lastrowid or 0) + 1))
    return tuple(known if record is user else next(added) for record, _ in records)


@functools.cache
def _insert(count: int) -> str:
    """The statement that adds `count` records."""
    return _INSERT.format(rows=", ".join([_ROW] * count))
