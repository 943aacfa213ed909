"""Read the runs of graphs in a database while gateways may be using it."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.storage.ports import Record
from gateway.storage.postgres.database import Connection
from gateway.storage.postgres.log import read_statement, record_of
from gateway.storage.postgres.offline import opened_beside
from gateway.storage.run_places import RunPlace

Found = tuple[RunPlace, tuple[Record, ...]]

# A full scan of the log: a person asks for this rarely, and an index would cost every turn. A run begins in
# the row that names its graph; a run of a single step begins in the record that also holds its end.
_BEGINNINGS = """
    SELECT run, key, message_id, at FROM (
        SELECT log.id, threads.key, log.message_id, log.at,
            coalesce(said->>'run', said#>>'{steps,0,run}') AS run,
            coalesce(said->'graph', said#>'{steps,0,graph}') AS graph
        FROM log JOIN threads ON threads.id = log.thread, LATERAL body_json(log.body) AS said
        WHERE strpos(log.body, '"graph"') > 0
    ) AS begun WHERE jsonb_typeof(graph) = 'string' AND run IS NOT NULL"""
_NEWEST = f"{_BEGINNINGS} ORDER BY id DESC LIMIT $1"
_ONE = f"{_BEGINNINGS} AND run = $1 ORDER BY id LIMIT 1"


async def newest_runs(url: str, limit: int) -> tuple[RunPlace, ...]:
    """The newest runs in the database, newest first. Raises StorageError."""
    async with opened_beside(url) as opened:
        rows = await opened.database.fetch(_NEWEST, limit)
    return tuple(
        RunPlace(run_id=run, thread=key, message_id=message, at=at) for run, key, message, at in rows
    )


async def run_records(url: str, run_id: str) -> Found | None:
    """The place of the run and all records of its message, oldest first; None for an unknown run."""
    async with opened_beside(url) as opened:
        rows = await opened.database.fetch(_ONE, run_id)
        if not rows:
            return None
        run, key, message, at = rows[0]
        place = RunPlace(run_id=run, thread=key, message_id=message, at=at)
        return (await opened.database.read(lambda db: _records(db, [place])))[0]


async def records_at(url: str, places: Sequence[RunPlace]) -> tuple[Found, ...]:
    """All records of the message of each place, oldest first. Raises StorageError."""
    async with opened_beside(url) as opened:
        return await opened.database.read(lambda db: _records(db, places))


async def _records(db: Connection, places: Sequence[RunPlace]) -> tuple[Found, ...]:
    found = []
    for place in places:
        sql, values = read_statement(
            place.thread,
            after=0,
            before=None,
            kinds=None,
            session_id=None,
            message_id=place.message_id,
            limit=None,
        )
        rows = await db.fetch(sql, *values)
        found.append((place, tuple(record_of(place.thread, row, {}) for row in rows)))
    return tuple(found)
