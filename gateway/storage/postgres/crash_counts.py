"""SQL on process deaths."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gateway.storage.crash_counts import Deaths
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import lock

# An entry that a living process works on was cut off by no death.
_CUT_OFF = """
    SELECT inbox.seq, attempts - excused AS begun, coalesce(alone, 0) AS alone
    FROM inbox LEFT JOIN deaths USING (seq) JOIN threads ON threads.id = inbox.thread
    WHERE outcome IS NULL AND attempts - excused > coalesce(total, 0)
        AND (threads.owner IS NULL OR threads.expires_at <= extract(epoch FROM clock_timestamp()))"""
_COUNT = """
    INSERT INTO deaths (seq, total, alone) VALUES ($1, $2, $3)
    ON CONFLICT (seq) DO UPDATE SET total = excluded.total, alone = excluded.alone"""
_FORGET = "DELETE FROM deaths WHERE seq NOT IN (SELECT seq FROM inbox WHERE outcome IS NULL)"
_OF = "SELECT seq, total, alone FROM deaths WHERE seq = ANY ($1::bigint[])"
_ALL = "SELECT seq, total, alone FROM deaths"


class PostgresDeaths:
    """Process deaths in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self) -> Mapping[int, Deaths]:
        return await self._database.write(_note)

    async def of(self, seqs: Collection[int]) -> Mapping[int, Deaths]:
        rows = await self._database.fetch(_OF, list(seqs))
        return {row["seq"]: Deaths(total=row["total"], alone=row["alone"]) for row in rows}


async def _note(db: Connection) -> dict[int, Deaths]:
    await lock(db, "deaths")
    await db.execute(_FORGET)
    found = await db.fetch(_CUT_OFF)
    counts = [(row["seq"], row["begun"], row["alone"] + (len(found) == 1)) for row in found]
    await db.executemany(_COUNT, counts)
    return {row["seq"]: Deaths(total=row["total"], alone=row["alone"]) for row in await db.fetch(_ALL)}
