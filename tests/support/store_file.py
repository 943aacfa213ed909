"""The SQLite file read from outside, with the gateway gone: a second opinion beside what clients saw."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """What the file says about one accepted message."""

    outcome: str | None
    attempts: int
    user_records: int
    assistant_records: int
    outbox: tuple[tuple[str, int], ...]
    """(state, attempts) of each reply."""


def integrity(path: Path) -> str:
    """SQLite's own verdict: `ok`, or what is broken."""
    return str(_rows(path, "PRAGMA integrity_check")[0][0])


def stored_messages(path: Path) -> dict[str, StoredMessage]:
    """Every accepted message by message_id."""
    records = {
        (message_id, kind): count
        for message_id, kind, count in _rows(
            path, "SELECT message_id, kind, count(*) FROM log GROUP BY message_id, kind"
        )
    }
    outbox: dict[str, list[tuple[str, int]]] = {}
    for message_id, state, attempts in _rows(
        path, "SELECT message_id, state, attempts FROM outbox ORDER BY id"
    ):
        outbox.setdefault(message_id, []).append((state, attempts))
    entries = _rows(path, "SELECT message_id, outcome, attempts FROM inbox WHERE kind = 'message'")
    if len({row[0] for row in entries}) != len(entries):
        raise AssertionError("a message stands in the inbox twice")
    return {
        message_id: StoredMessage(
            outcome=outcome,
            attempts=attempts,
            user_records=records.get((message_id, "user"), 0),
            assistant_records=records.get((message_id, "assistant"), 0),
            outbox=tuple(outbox.get(message_id, ())),
        )
        for message_id, outcome, attempts in entries
    }


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()
