"""The keys of sealed bodies, one row for each message. Runs in a DatabaseThread.

A deleted key is overwritten with zeros (`secure_delete`), and the write-ahead log is emptied behind it.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from gateway.storage.json_bodies import SEALED_TEXT, decode_body
from gateway.storage.sealing import opened
from pipeline.domain.messages import Mode

SEAL_TABLES: Final = (
    "ALTER TABLE threads ADD COLUMN off_record INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE inbox ADD COLUMN seals INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX inbox_seals ON inbox(thread) WHERE seals = 1 AND outcome IS NULL",
    """CREATE TABLE seal_keys (
        name TEXT PRIMARY KEY,
        thread INTEGER NOT NULL REFERENCES threads(id),
        key BLOB NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # Whatever finishes an entry deletes its key.
    """CREATE TRIGGER seal_keys_of_finished AFTER UPDATE OF outcome ON inbox WHEN new.outcome IS NOT NULL
        BEGIN DELETE FROM seal_keys WHERE name = new.message_id; END""",
    """UPDATE threads SET off_record = 1 WHERE id IN (
        SELECT thread FROM (
            SELECT thread, body, max(id) FROM log WHERE kind = 'session' GROUP BY thread)
        WHERE json_valid(body) AND json_extract(body, '$.mode') = 'otr')""",
)
"""The step of the migrations that brings the keys."""

_PUT = """
    INSERT INTO seal_keys (name, thread, key) VALUES (?, (SELECT id FROM threads WHERE key = ?), ?)
    ON CONFLICT (name) DO UPDATE SET key = excluded.key"""
_KEY = "SELECT key FROM seal_keys WHERE name = ?"
_OF_ROW = "DELETE FROM seal_keys WHERE name = (SELECT message_id FROM outbox WHERE id = ?)"
_OF_SESSION = "DELETE FROM seal_keys WHERE name IN (SELECT id FROM interactions WHERE session_id = ?)"
OF_THREAD: Final = "DELETE FROM seal_keys WHERE thread = ?"
_MODE = "UPDATE threads SET off_record = ? WHERE key = ?"
_IS_OFF = "SELECT off_record FROM threads WHERE key = ?"


def put(db: sqlite3.Connection, name: str, thread: str, key: bytes) -> None:
    """Store a key under the id of its message."""
    db.execute(_PUT, (name, thread, key))


def readable(db: sqlite3.Connection, name: str, text: str) -> dict[str, Any]:
    """The body of a row of the message `name`, opened if it is sealed. Raises ValueError if it is damaged."""
    body = decode_body(text)
    if not text.startswith(SEALED_TEXT):
        return body
    return opened(body, key_of(db, name))


def key_of(db: sqlite3.Connection, name: str) -> bytes | None:
    """The key of a message, a question or a file; None if it is gone."""
    row = db.execute(_KEY, (name,)).fetchone()
    return None if row is None else bytes(row[0])


def set_mode(db: sqlite3.Connection, thread: str, mode: Mode) -> None:
    """Note the mode of the thread's session."""
    db.execute(_MODE, (mode == "otr", thread))


def drop_of_row(db: sqlite3.Connection, row_id: int) -> None:
    """Delete the key of what an outbox row shows."""
    db.execute(_OF_ROW, (row_id,))


def drop_of_session(db: sqlite3.Connection, session_id: str) -> None:
    """Delete the keys of the session's questions. Call it before they are deleted."""
    db.execute(_OF_SESSION, (session_id,))


def is_off_record(db: sqlite3.Connection, thread: str) -> bool:
    """Whether the thread's session is off the record."""
    row = db.execute(_IS_OFF, (thread,)).fetchone()
    return row is not None and bool(row[0])
