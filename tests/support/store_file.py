"""Read the store without the gateway, to check it independently of the clients: the SQLite file, or with
`--store postgres` the database of its folder, which has the same tables.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from gateway.storage.ports import Record
from gateway.turns.run_codec import runs_of
from tests.support.default_store import database_of


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
    """SQLite's own check: `ok`, or the damage. A database server has none."""
    if database_of(path.parent) is not None:
        return "ok"
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
    runs = [run for records in _threads(path).values() for run in runs_of(records).items()]
    left = [run_id for run_id, steps in runs if steps[-1] is None or steps[-1]["do"] != "end"]
    return left + [name for (name,) in _rows(path, "SELECT message_id FROM inbox WHERE outcome IS NULL")]


def resumed_runs(path: Path, prefix: str, kills: Sequence[float]) -> int:
    """How many messages have one run, with a step on record before one of the `kills` (Unix times) and its
    outcome after it, in threads whose keys begin with `prefix`."""
    steps: dict[str, list[Record]] = {}
    ends: dict[str, float] = {}
    for thread, rows in _threads(path).items():
        for row in rows if thread.startswith(prefix) else ():
            if row.kind == "step":
                steps.setdefault(row.message_id, []).append(row)
            elif row.kind == "assistant":
                ends[row.message_id] = row.at
    return sum(
        sum("run" in row.body for row in rows) == 1
        and any(rows[0].at < kill < ends.get(message_id, 0.0) for kill in kills)
        for message_id, rows in steps.items()
    )


def agents_by_account(path: Path) -> Mapping[str, Mapping[str, int]]:
    """How many messages each agent answered, by channel and account."""
    found: dict[str, Counter[str]] = {}
    for thread, rows in _threads(path).items():
        account = ":".join(thread.split(":")[:2])
        names = [row.body.get("agent", "default") for row in rows if row.kind == "user"]
        found.setdefault(account, Counter()).update(names)
    return {account: dict(names) for account, names in found.items()}


def _threads(path: Path) -> dict[str, list[Record]]:
    """Every thread's records, oldest first, by the thread's key."""
    query = """
        SELECT log.id, threads.key, kind, session_id, message_id, body, at
        FROM log JOIN threads ON threads.id = log.thread ORDER BY log.id"""
    threads: dict[str, list[Record]] = {}
    for row_id, thread, kind, session_id, message_id, body, at in _rows(path, query):
        record = Record(
            id=row_id,
            thread=thread,
            kind=kind,
            session_id=session_id,
            message_id=message_id,
            body=json.loads(body),
            at=at,
        )
        threads.setdefault(thread, []).append(record)
    return threads


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    url = database_of(path.parent)
    if url is not None:
        # The caller may run in an event loop, and waits as it would for the file.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, _fetched(url, query)).result()
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


async def _fetched(url: str, query: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(url, server_settings={"search_path": "parlour"})
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()
