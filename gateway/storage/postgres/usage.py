"""SQL on token use and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, plain
from gateway.storage.usage import Spent

ADD: Final = """
    INSERT INTO usage (day, scope, tokens, cost) VALUES ($1, $2, $3, $4)
    ON CONFLICT (day, scope)
        DO UPDATE SET tokens = usage.tokens + excluded.tokens, cost = usage.cost + excluded.cost
    RETURNING tokens, cost"""
_OF = "SELECT scope, tokens, cost FROM usage WHERE day = $1 AND scope = ANY($2::text[])"
_SINCE = """
    SELECT coalesce(sum(tokens), 0)::bigint, coalesce(sum(cost), 0.0)::float8 FROM usage
    WHERE day >= $1 AND scope = $2"""
_FORGET = "DELETE FROM usage WHERE day < $1"


class PostgresUsage:
    """Token use and cost in a Postgres database: the sums count what every process has added."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, day: str, scopes: Sequence[str], spent: Spent) -> None:
        # In one order in every process: two that add to the same rows never wait for each other.
        rows = [(day, plain(scope), spent.tokens, spent.cost) for scope in sorted(scopes)]

        async def change(db: Connection) -> None:
            await db.executemany(ADD, rows)

        await self._database.write(change)

    async def of(self, day: str, scopes: Sequence[str]) -> Mapping[str, Spent]:
        stored = {scope: plain(scope) for scope in scopes}
        rows = await self._database.read(lambda db: db.fetch(_OF, day, list(stored.values())))
        found = {row["scope"]: Spent(tokens=row["tokens"], cost=row["cost"]) for row in rows}
        return {scope: found.get(key, Spent()) for scope, key in stored.items()}

    async def since(self, day: str, scope: str) -> Spent:
        ((tokens, cost),) = await self._database.read(lambda db: db.fetch(_SINCE, day, plain(scope)))
        return Spent(tokens=tokens, cost=cost)

    async def forget_before(self, day: str) -> int:
        async def change(db: Connection) -> int:
            return changed(await db.execute(_FORGET, day))

        return await self._database.write(change)
