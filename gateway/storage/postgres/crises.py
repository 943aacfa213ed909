"""SQL on the records of crisis responses."""

from __future__ import annotations

from typing import Any, Final

from gateway.storage.crises import CrisisDay, CrisisRecord, day_of, oldest_kept
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, plain

ADD: Final = "SELECT add_crisis($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
"""With `values_of`: whether the record is there."""
_COLUMNS = 'id, session, "user", at, level, override, path, reason, completed, llm_failed'
_COUNT_FAILURE = """
    INSERT INTO crisis_days AS known (day, level, path, events, llm_failures, completed)
    VALUES ($1, $2, 'deterministic', 0, 1, 0)
    ON CONFLICT (day, level, path) DO UPDATE SET llm_failures = known.llm_failures + 1"""
_LISTED = f"SELECT {_COLUMNS}, kept_until, kept_because FROM crises ORDER BY at DESC, id DESC LIMIT $1"  # noqa: S608 - a constant
_DAYS = "SELECT day, level, path, events, llm_failures, completed FROM crisis_days ORDER BY day, level, path"
_KEEP = "UPDATE crises SET kept_until = $1, kept_because = $2 WHERE id = $3"
_FORGET = 'UPDATE crises SET "user" = NULL WHERE "user" = $1'
_PRUNE = "DELETE FROM crises WHERE at < $1 AND (kept_until IS NULL OR kept_until < $2)"


def values_of(record: CrisisRecord) -> tuple[Any, ...]:
    """The arguments of `add_crisis`."""
    return (
        record.id,
        record.session,
        None if record.user is None else plain(record.user),
        record.at,
        record.level,
        record.override,
        record.path,
        record.reason,
        record.completed,
        record.llm_failed,
        day_of(record.at),
    )


async def add(db: Connection, record: CrisisRecord) -> bool:
    """Add a record and count it, unless it is there, in the caller's transaction, which a fault of these
    tables leaves whole; False if there was one."""
    return bool(await db.fetchval(ADD, *values_of(record)))


class PostgresCrises:
    """The records in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count_failure(self, *, at: float, level: int) -> None:
        await self._write(_COUNT_FAILURE, day_of(at), level)

    async def listed(self, *, limit: int) -> tuple[CrisisRecord, ...]:
        rows = await self._database.read(lambda db: db.fetch(_LISTED, limit))
        return tuple(CrisisRecord(**dict(row)) for row in rows)

    async def days(self) -> tuple[CrisisDay, ...]:
        rows = await self._database.read(lambda db: db.fetch(_DAYS))
        return tuple(CrisisDay(**dict(row)) for row in rows)

    async def keep(self, record_id: str, *, until: float, because: str) -> bool:
        return await self._write(_KEEP, until, plain(because), record_id) > 0

    async def forget(self, user: str) -> None:
        await self._write(_FORGET, plain(user))

    async def prune(self, *, now: float) -> int:
        return await self._write(_PRUNE, oldest_kept(now), now)

    async def _write(self, statement: str, *values: Any) -> int:
        async def change(db: Connection) -> int:
            return changed(await db.execute(statement, *values))

        return await self._database.write(change)
