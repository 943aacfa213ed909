"""SQL on the audit. One chain for all processes: who appends holds its lock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from gateway.storage.audit import AuditHead, AuditRow, Damage, NewAuditRecord, continued, naming
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, lock
from pipeline.domain.errors import StorageError

_LOCK = "audit"
_LAST = "SELECT n, line, hash FROM audit ORDER BY n DESC LIMIT $1"
_LISTED = "SELECT n, line, hash FROM audit WHERE n > $1 ORDER BY n LIMIT $2"
_ALL = "SELECT n, line, hash FROM audit ORDER BY n"
_SET_ROW = "UPDATE audit SET line = $1, hash = $2 WHERE n = $3"
_EMPTY_COPY = "UPDATE audit_quarantine SET line = '' WHERE position($1::bytea IN line) > 0"
_HEAD = "SELECT n, hash FROM audit_head"
_ADD = "INSERT INTO audit (n, line, hash) VALUES ($1, $2, $3)"
_SET_HEAD = """
    INSERT INTO audit_head (one, n, hash) VALUES (1, $1, $2)
    ON CONFLICT (one) DO UPDATE SET n = excluded.n, hash = excluded.hash"""
_HAS = "SELECT 1 FROM audit WHERE n <= $1 LIMIT 1"
_PRUNE = "DELETE FROM audit WHERE n <= $1"
_KEEP = """
    INSERT INTO audit_quarantine (n, line, problem, at)
    VALUES ($1, coalesce((SELECT line FROM audit WHERE n = $1), ''), $2, $3)"""


class PostgresAudit:
    """The audit in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, records: Sequence[NewAuditRecord]) -> asyncio.Future[None]:
        try:
            return self._database.submit(lambda db: append(db, records))
        except StorageError as error:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.set_exception(error)
            return future

    async def listed(self, *, after: int = 0, limit: int) -> tuple[AuditRow, ...]:
        rows = await self._database.read(lambda db: db.fetch(_LISTED, after, limit))
        return tuple(map(_row, rows))

    async def newest(self, *, limit: int) -> tuple[AuditRow, ...]:
        rows = await self._database.read(lambda db: db.fetch(_LAST, limit))
        return tuple(map(_row, reversed(rows)))

    async def head(self) -> AuditHead | None:
        return await self._database.read(head)

    async def prune(self, through: int, record: NewAuditRecord) -> int:
        async def change(db: Connection) -> int:
            await lock(db, _LOCK)
            if await db.fetchrow(_HAS, through) is None:
                return 0
            # First: the end of the chain is checked while it is whole.
            await append(db, [record])
            return changed(await db.execute(_PRUNE, through))

        return await self._database.write(change)

    async def quarantine(self, damage: Sequence[Damage], *, at: float) -> None:
        async def change(db: Connection) -> None:
            await lock(db, _LOCK)
            for one in damage:
                await db.execute(_KEEP, one.n, one.problem, at)
            await append(db, [naming(one.n, one.problem, at) for one in damage])

        await self._database.write(change)


async def rows(db: Connection) -> tuple[AuditRow, ...]:
    """All records, in order. Nothing is appended until the caller's transaction ends."""
    await lock(db, _LOCK)
    return tuple(map(_row, await db.fetch(_ALL)))


async def rewrite(
    db: Connection, changed_rows: Sequence[AuditRow], end: AuditHead, naming: Sequence[str]
) -> None:
    """Replace records, and what the last one should be, inside the caller's transaction. The copies of
    damaged records that hold one of the texts `naming` are emptied."""
    await db.executemany(_SET_ROW, [(row.line, row.hash, row.n) for row in changed_rows])
    await db.execute(_SET_HEAD, end.n, end.hash)
    for text in naming:
        await db.execute(_EMPTY_COPY, text.encode("utf-8", "replace"))


async def append(db: Connection, records: Sequence[NewAuditRecord]) -> None:
    """Append inside the caller's transaction."""
    if not records:
        return
    await lock(db, _LOCK)
    # Separate statements, behind the lock: they see what the transaction that held it has appended.
    newest = await db.fetchrow(_LAST, 1)
    continuation = continued(await head(db), None if newest is None else _row(newest), records)
    if continuation.damaged is not None:
        await db.execute(_KEEP, *continuation.damaged, records[0].at)
    added = continuation.rows
    await db.executemany(_ADD, [(row.n, row.line, row.hash) for row in added])
    await db.execute(_SET_HEAD, added[-1].n, added[-1].hash)


async def head(db: Connection) -> AuditHead | None:
    """What the last record should be; None if that row is gone."""
    row = await db.fetchrow(_HEAD)
    return None if row is None else AuditHead(n=row["n"], hash=row["hash"])


def _row(row: Any) -> AuditRow:
    return AuditRow(n=row["n"], line=bytes(row["line"]), hash=row["hash"])
