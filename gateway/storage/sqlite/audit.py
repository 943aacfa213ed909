"""SQL on the audit, and the part of the store that runs it in its threads."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence

from gateway.storage.audit import (
    AuditHead,
    AuditRow,
    Damage,
    NewAuditRecord,
    chained,
    continued,
    naming,
)
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.domain.errors import StorageError

# As bytes: a damaged line may not be text.
_COLUMNS = "n, CAST(line AS BLOB), CAST(hash AS BLOB)"
_LAST = f"SELECT {_COLUMNS} FROM audit ORDER BY n DESC LIMIT ?"  # noqa: S608 - a constant
_LISTED = f"SELECT {_COLUMNS} FROM audit WHERE n > ? ORDER BY n LIMIT ?"  # noqa: S608 - a constant
_ALL = f"SELECT {_COLUMNS} FROM audit ORDER BY n"  # noqa: S608 - a constant
_SET_ROW = "UPDATE audit SET line = ?, hash = ? WHERE n = ?"
_EMPTY_COPY = "UPDATE audit_quarantine SET line = x'' WHERE instr(line, CAST(? AS BLOB))"
_HEAD = "SELECT n, CAST(hash AS BLOB) FROM audit_head"
# One statement for both rows, of which either may be missing.
_END = f"""SELECT 1, {_COLUMNS} FROM (SELECT * FROM audit ORDER BY n DESC LIMIT 1)
    UNION ALL SELECT 0, n, NULL, CAST(hash AS BLOB) FROM audit_head"""  # noqa: S608 - a constant
_ADD = "INSERT INTO audit (n, line, hash) VALUES (?, ?, ?)"
_SET_HEAD = "INSERT INTO audit_head (one, n, hash) VALUES (1, ?, ?) ON CONFLICT DO UPDATE SET n = ?, hash = ?"
# Nothing is changed if the last row or the row about the end is another one than those given.
_CONTINUE = """UPDATE audit_head SET n = ?1, hash = ?2 WHERE n = ?3 AND hash = ?4
    AND (SELECT n = ?3 AND hash = ?4 AND line = ?5 FROM audit ORDER BY n DESC LIMIT 1)"""
_HAS = "SELECT 1 FROM audit WHERE n <= ? LIMIT 1"
_PRUNE = "DELETE FROM audit WHERE n <= ?"
_KEEP = """INSERT INTO audit_quarantine (n, line, problem, at)
    SELECT ?1, coalesce((SELECT CAST(line AS BLOB) FROM audit WHERE n = ?1), x''), ?2, ?3"""


class SqliteAudit:
    """The audit in one SQLite file: a part of `SqliteStore`."""

    _last: AuditRow | None = None
    """What `append` has added last. It may have been rolled back, or damaged since. Used by the thread that
    writes."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    def append(self, records: Sequence[NewAuditRecord]) -> asyncio.Future[None]:
        try:
            return self._writer().submit(lambda db: self._append(db, records))
        except StorageError as error:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.set_exception(error)
            return future

    def _append(self, db: sqlite3.Connection, records: Sequence[NewAuditRecord]) -> None:
        """Append behind what was added last, if that is how it was added; else as `append`."""
        last = self._last
        if last is not None and records:
            rows = chained(AuditHead(n=last.n, hash=last.hash), records)
            end = rows[-1]
            # Compared in the store: a row that is the same needs no hash.
            if db.execute(_CONTINUE, (end.n, end.hash, last.n, last.hash, last.line)).rowcount == 1:
                db.executemany(_ADD, [(row.n, row.line, row.hash) for row in rows])
                self._last = end
                return
        self._last = append(db, records)

    async def listed(self, *, after: int = 0, limit: int) -> tuple[AuditRow, ...]:
        rows = await self._reader().submit(lambda db: db.execute(_LISTED, (after, limit)).fetchall())
        return tuple(map(_row, rows))

    async def newest(self, *, limit: int) -> tuple[AuditRow, ...]:
        rows = await self._reader().submit(lambda db: db.execute(_LAST, (limit,)).fetchall())
        return tuple(map(_row, reversed(rows)))

    async def head(self) -> AuditHead | None:
        return await self._reader().submit(head)

    async def prune(self, through: int, record: NewAuditRecord) -> int:
        def work(db: sqlite3.Connection) -> int:
            if db.execute(_HAS, (through,)).fetchone() is None:
                return 0
            # First: the end of the chain is checked while it is whole.
            append(db, [record])
            return db.execute(_PRUNE, (through,)).rowcount

        return await self._writer().submit(work)

    async def quarantine(self, damage: Sequence[Damage], *, at: float) -> None:
        def work(db: sqlite3.Connection) -> None:
            for one in damage:
                db.execute(_KEEP, (one.n, one.problem, at))
            append(db, [naming(one.n, one.problem, at) for one in damage])

        await self._writer().submit(work)


def rows(db: sqlite3.Connection) -> Iterator[AuditRow]:
    """All records, in order."""
    return map(_row, db.execute(_ALL))


def rewrite(
    db: sqlite3.Connection, changed: Sequence[AuditRow], end: AuditHead, naming: Sequence[str]
) -> None:
    """Replace records, and what the last one should be, inside the caller's transaction. The copies of
    damaged records that hold one of the texts `naming` are emptied."""
    db.executemany(_SET_ROW, [(row.line, row.hash, row.n) for row in changed])
    db.execute(_SET_HEAD, (end.n, end.hash) * 2)
    for text in naming:
        db.execute(_EMPTY_COPY, (text,))


def append(db: sqlite3.Connection, records: Sequence[NewAuditRecord]) -> AuditRow | None:
    """Append inside the caller's transaction; the last row that was added."""
    if not records:
        return None
    last, end = None, None
    for is_record, *row in db.execute(_END):
        if is_record:
            last = _row((row[0], row[1], row[2]))
        else:
            end = AuditHead(n=row[0], hash=row[2].decode("utf-8", "replace"))
    continuation = continued(end, last, records)
    if continuation.damaged is not None:
        db.execute(_KEEP, (*continuation.damaged, records[0].at))
    rows = continuation.rows
    db.executemany(_ADD, [(row.n, row.line, row.hash) for row in rows])
    db.execute(_SET_HEAD, (rows[-1].n, rows[-1].hash) * 2)
    return rows[-1]


def head(db: sqlite3.Connection) -> AuditHead | None:
    """What the last record should be; None if that row is gone."""
    row = db.execute(_HEAD).fetchone()
    return None if row is None else AuditHead(n=row[0], hash=row[1].decode("utf-8", "replace"))


def _row(row: tuple[int, bytes, bytes]) -> AuditRow:
    return AuditRow(n=row[0], line=row[1], hash=row[2].decode("utf-8", "replace"))
