"""SQL on token use and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, plain
from gateway.storage.usage import Spent

# In one order in every process: of two that add to the same rows, neither waits for the other's next one.
_ADD = """
    INSERT INTO usage (day, scope, tokens, cost)
    SELECT $1, scope, count(*) * $3::bigint, count(*) * $4::float8 FROM unnest($2::text[]) AS scope
    GROUP BY scope ORDER BY scope COLLATE "C"
    ON CONFLICT (day, scope)
        DO UPDATE SET tokens = usage.tokens + excluded.tokens, cost = usage.cost + excluded.cost
    RETURNING scope, tokens, cost"""
_OF = "SELECT scope, tokens, cost FROM usage WHERE day = $1 AND scope = ANY($2::text[])"
_SINCE = """
    SELECT coalesce(sum(tokens), 0)::bigint, coalesce(sum(cost), 0.0)::float8 FROM usage
    WHERE day >= $1 AND scope = $2"""
_FORGET = "DELETE FROM usage WHERE day < $1"


class PostgresUsage:
    """Token use and cost in a Postgres database: the sums count what every process has added."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, day: str, scopes: Sequence[str], spent: Spent) -> Mapping[str, Spent]:
        stored = {scope: plain(scope) for scope in scopes}
        values = (day, [stored[scope] for scope in scopes], spent.tokens, spent.cost)

        async def change(db: Connection) -> dict[str, Spent]:
            rows = await db.fetch(_ADD, *values)
            return {row["scope"]: Spent(tokens=row["tokens"], cost=row["cost"]) for row in rows}

        sums = await self._database.write(change)
        return {scope: sums[key] for scope, key in stored.items()}

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
