"""SQL on token use and cost, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence

from gateway.storage.sqlite.worker_thread import DatabaseThread
from gateway.storage.usage import Spent

_ADD = """
    INSERT INTO usage (day, scope, tokens, cost) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost
    RETURNING tokens, cost"""
_OF = "SELECT tokens, cost FROM usage WHERE day = ? AND scope = ?"
_SINCE = "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost), 0.0) FROM usage WHERE day >= ? AND scope = ?"
_FORGET = "DELETE FROM usage WHERE day < ?"


class SqliteUsage:
    """Token use and cost in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def add(self, day: str, scopes: Sequence[str], spent: Spent) -> Mapping[str, Spent]:
        rows = [(day, scope, spent.tokens, spent.cost) for scope in scopes]

        def work(db: sqlite3.Connection) -> dict[str, Spent]:
            sums = {row[1]: db.execute(_ADD, row).fetchone() for row in rows}
            return {scope: Spent(tokens=tokens, cost=cost) for scope, (tokens, cost) in sums.items()}

        return await self._writer().submit(work)

    async def of(self, day: str, scopes: Sequence[str]) -> Mapping[str, Spent]:
        def work(db: sqlite3.Connection) -> dict[str, Spent]:
            found = {scope: db.execute(_OF, (day, scope)).fetchone() for scope in scopes}
            return {
                scope: Spent() if row is None else Spent(tokens=row[0], cost=row[1])
                for scope, row in found.items()
            }

        return await self._reader().submit(work)

    async def since(self, day: str, scope: str) -> Spent:
        def work(db: sqlite3.Connection) -> Spent:
            tokens, cost = db.execute(_SINCE, (day, scope)).fetchone()
            return Spent(tokens=tokens, cost=cost)

        return await self._reader().submit(work)

    async def forget_before(self, day: str) -> int:
        return await self._writer().submit(lambda db: db.execute(_FORGET, (day,)).rowcount)
