"""Read the SQLite file without the gateway, to check it independently of the clients."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.storage.ports import Record
from gateway.turns.run_codec import runs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """The data in the file about one accepted message."""

    outcome: str | None
    attempts: int
    user_records: int
    assistant_records: int
    outbox: tuple[tuple[str, int], ...]
    """(state, attempts) of each reply."""


def integrity(path: Path) -> str:
    """SQLite's own check: `ok`, or the damage."""
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
        raise AssertionError("a message is in the inbox twice")
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


def open_runs(path: Path) -> list[str]:
    """The recorded runs without an end, and the unfinished inbox entries."""
    query = "SELECT id, thread, kind, session_id, message_id, body, at FROM log ORDER BY id"
    threads: dict[str, list[Record]] = {}
    for row_id, thread, kind, session_id, message_id, body, at in _rows(path, query):
        record = Record(
            id=row_id,
            thread=str(thread),
            kind=kind,
            session_id=session_id,
            message_id=message_id,
            body=json.loads(body),
            at=at,
        )
        threads.setdefault(record.thread, []).append(record)
    runs = [run for records in threads.values() for run in runs_of(records).items()]
    left = [run_id for run_id, steps in runs if steps[-1] is None or steps[-1]["do"] != "end"]
    return left + [name for (name,) in _rows(path, "SELECT message_id FROM inbox WHERE outcome IS NULL")]


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()
