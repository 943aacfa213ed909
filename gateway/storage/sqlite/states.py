"""SQL on kept states, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from gateway.storage.json_bodies import decode_body
from gateway.storage.sqlite.worker_thread import DatabaseThread
from gateway.storage.states import KeptState, StateChanged, StateWrite

_READ = "SELECT revision, body FROM states WHERE owner = ? AND graph = ?"
_FORGET = "DELETE FROM states WHERE owner = ?"
_ADD = "INSERT INTO states (owner, graph, revision, body) VALUES (?, ?, 1, ?) ON CONFLICT DO NOTHING"
_CHANGE = """
    UPDATE states SET revision = revision + 1, body = ? WHERE owner = ? AND graph = ? AND revision = ?"""


class SqliteStates:
    """Kept states in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def read(self, owner: str, graph: str) -> KeptState | None:
        row = await self._reader().submit(lambda db: db.execute(_READ, (owner, graph)).fetchone())
        if row is None:
            return None
        return KeptState(owner=owner, graph=graph, revision=row[0], body=decode_body(row[1]))

    async def forget(self, owner: str) -> int:
        return await self._writer().submit(lambda db: db.execute(_FORGET, (owner,)).rowcount)


def write(db: sqlite3.Connection, state: StateWrite, body: str) -> None:
    """Store a state inside the caller's transaction. Raises StateChanged."""
    if state.revision:
        values: tuple[str | int, ...] = (body, state.owner, state.graph, state.revision)
        changed = db.execute(_CHANGE, values).rowcount
    else:
        changed = db.execute(_ADD, (state.owner, state.graph, body)).rowcount
    if not changed:
        raise StateChanged(f"the state of {state.graph} has changed since it was read")
