"""SQL on the outbox. Runs in a DatabaseThread."""

from __future__ import annotations

import sqlite3
from typing import Any

from gateway.storage.append_errors import foreign_row
from gateway.storage.json_bodies import FORGOTTEN, decode_body, storable_text
from gateway.storage.ports import Lease, NewOutboxRow, OutboxRow, OutboxState, SentPart
from gateway.storage.sqlite import seals, threads
from gateway.storage.sqlite.secure_overwrite import filled
from pipeline.domain.errors import AlreadyDone

_INSERT = """
    INSERT INTO outbox
        (key, thread, message_id, entry_id, body, created_at, state, attempts, receipt, sent_at)
    VALUES (?, (SELECT id FROM threads WHERE key = ?), ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO NOTHING"""
_KNOWN = "SELECT id FROM outbox WHERE key = ?"
_SELECT = """
    SELECT o.id, o.key, t.key, message_id, entry_id, body, state, attempts, not_before, created_at,
        receipt, error
    FROM outbox AS o """
# The index is given, because SQLite has no statistics and would read everything ever sent.
_SELECT_OPEN = _SELECT + "INDEXED BY outbox_open JOIN threads AS t ON t.id = o.thread "
ALL_OPEN = _SELECT_OPEN + "WHERE state IN ('ready', 'sending') ORDER BY o.id"
OPEN_OF_THREAD = _SELECT_OPEN + "WHERE state IN ('ready', 'sending') AND t.key = ? ORDER BY o.id"
_ONE = _SELECT + "JOIN threads AS t ON t.id = o.thread WHERE o.id = ?"
_ONE_BY_KEY = _SELECT + "JOIN threads AS t ON t.id = o.thread WHERE o.key = ?"
# The lease is that of the row's thread or of its account, with which the thread's key begins.
_OPEN_AND_LEASED = """
    WHERE id = ? AND state IN ('ready', 'sending') AND EXISTS (
        SELECT 1 FROM threads AS lease JOIN threads AS own ON own.id = outbox.thread
        WHERE lease.key = ? AND lease.fence = ? AND lease.owner = ?
            AND substr(own.key || ':', 1, length(lease.key) + 1) = lease.key || ':')"""
_SENDING = "UPDATE outbox SET state = 'sending', attempts = attempts + 1" + _OPEN_AND_LEASED  # noqa: S608 - a constant
_SENT = "UPDATE outbox SET state = 'sent', receipt = ?, sent_at = ?" + _OPEN_AND_LEASED  # noqa: S608 - a constant
_RETRY = "UPDATE outbox SET state = ?, error = ?, not_before = ?" + _OPEN_AND_LEASED  # noqa: S608 - a constant
_NOTE_SHOWN = """
    INSERT INTO shown (key, part, native_id, final, at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (key, part)
        DO UPDATE SET native_id = excluded.native_id, final = excluded.final, at = excluded.at"""
_SHOWN = "SELECT part, native_id, final, at FROM shown WHERE key = ? ORDER BY part"
_RECEIPTS = """
    SELECT o.receipt FROM outbox AS o JOIN threads AS t ON t.id = o.thread
    WHERE o.state = 'sent' AND (t.key = :chat OR (t.key > :chat || ':' AND t.key < :chat || ';'))
    ORDER BY o.id DESC LIMIT 20"""
"""Reads the ids backwards: it is called rarely, and for a chat with recent replies."""
_FORGET_SHOWN = "DELETE FROM shown WHERE key = (SELECT key FROM outbox WHERE id = ?)"
_SIZE = "SELECT length(CAST(body AS BLOB)) FROM outbox WHERE id = ?"
_RECORD_SIZES = """
    SELECT log.id, length(CAST(log.body AS BLOB)) FROM log JOIN outbox
        ON outbox.thread = log.thread AND outbox.message_id = log.message_id
    WHERE outbox.id = ?"""
_FORGET_ROW = "UPDATE outbox SET body = ? WHERE id = ?"
_FORGET_RECORD = "UPDATE log SET body = ? WHERE id = ?"
_FAILED = "UPDATE outbox SET state = 'failed', error = ?" + _OPEN_AND_LEASED  # noqa: S608 - a constant
_IS_OPEN = "SELECT 1 FROM outbox WHERE id = ? AND state IN ('ready', 'sending')"


def add(db: sqlite3.Connection, thread: str, entry_id: int, row: NewOutboxRow, body: str) -> int:
    """Add the row unless its key exists already; the id of the row with that key."""
    at, state = row.created_at, row.state
    sent = (str(entry_id), at) if state == "sent" else ("", None)
    values = (row.key, thread, row.message_id, entry_id, body, at, state, state == "sending", *sent)
    cursor = db.execute(_INSERT, values)
    if cursor.rowcount == 1 and cursor.lastrowid is not None:
        return cursor.lastrowid
    return int(db.execute(_KNOWN, (row.key,)).fetchone()[0])


def open_rows(db: sqlite3.Connection, thread: str | None) -> tuple[OutboxRow, ...]:
    """Rows ready or sending, of one thread or of all, oldest first."""
    rows = db.execute(ALL_OPEN) if thread is None else db.execute(OPEN_OF_THREAD, (thread,))
    return tuple(_row(values) for values in rows)


def one(db: sqlite3.Connection, row: int | str) -> OutboxRow | None:
    """The row with that id or, for a string, with that key; or None."""
    values = db.execute(_ONE_BY_KEY if isinstance(row, str) else _ONE, (row,)).fetchone()
    return None if values is None else _row(values)


def receipts(db: sqlite3.Connection, chat: str) -> tuple[str, ...]:
    """Receipts of the last replies to the thread `chat` and its topics, newest first."""
    return tuple(receipt for (receipt,) in db.execute(_RECEIPTS, {"chat": chat}))


def mark_sending(db: sqlite3.Connection, lease: Lease, row_id: int) -> None:
    """Set state sending and count one attempt."""
    _change(db, lease, row_id, _SENDING, ())


def mark_sent(db: sqlite3.Connection, lease: Lease, row_id: int, receipt: str, at: float) -> None:
    """Set state sent, with the receipt."""
    _change(db, lease, row_id, _SENT, (storable_text(receipt), at))
    db.execute(_FORGET_SHOWN, (row_id,))


def mark_retry(
    db: sqlite3.Connection, lease: Lease, row_id: int, state: OutboxState, error: str, not_before: float
) -> None:
    """Set `state`, the error and the time of the next attempt."""
    _change(db, lease, row_id, _RETRY, (state, storable_text(error), not_before))


def mark_failed(db: sqlite3.Connection, lease: Lease, row_id: int, error: str) -> None:
    """Set state failed, with the reason."""
    _change(db, lease, row_id, _FAILED, (storable_text(error),))
    db.execute(_FORGET_SHOWN, (row_id,))


def forget(db: sqlite3.Connection, row_id: int) -> None:
    """Overwrite the row's body and the text of its message's records, and delete the key of these."""
    seals.drop_of_row(db, row_id)
    for record_id, size in db.execute(_RECORD_SIZES, (row_id,)).fetchall():
        db.execute(_FORGET_RECORD, (filled(FORGOTTEN, size), record_id))
    for (size,) in db.execute(_SIZE, (row_id,)).fetchall():
        db.execute(_FORGET_ROW, (filled(FORGOTTEN, size), row_id))


def record_sent_part(db: sqlite3.Connection, lease: Lease, key: str, part: SentPart) -> None:
    """Store which message shows a part of the reply under `key`. Raises FenceLost."""
    threads.require_fence(db, lease)
    db.execute(_NOTE_SHOWN, (key, part.part, storable_text(part.native_id), part.final, part.at))


def shown(db: sqlite3.Connection, key: str) -> tuple[SentPart, ...]:
    """The stored parts for `key`, by part."""
    return tuple(
        SentPart(part=part, native_id=native_id, final=bool(final), at=at)
        for part, native_id, final, at in db.execute(_SHOWN, (key,))
    )


def _change(
    db: sqlite3.Connection, lease: Lease, row_id: int, sql: str, values: tuple[str | float, ...]
) -> None:
    if db.execute(sql, (*values, row_id, lease.thread, lease.fence, lease.owner)).rowcount:
        return
    threads.require_fence(db, lease)
    if db.execute(_IS_OPEN, (row_id,)).fetchone() is None:
        raise AlreadyDone(f"outbox row {row_id} is not waiting to be sent")
    raise foreign_row(lease, row_id)


def _row(columns: tuple[Any, ...]) -> OutboxRow:
    (
        row_id,
        key,
        thread,
        message_id,
        entry_id,
        body,
        state,
        attempts,
        not_before,
        created_at,
        receipt,
        error,
    ) = columns
    return OutboxRow(
        id=row_id,
        key=key,
        thread=thread,
        message_id=message_id,
        entry_id=entry_id,
        body=decode_body(body),
        state=state,
        attempts=attempts,
        not_before=not_before,
        created_at=created_at,
        receipt=receipt,
        error=error,
    )
