"""SQL on the records of crisis responses, and the part of the store that runs it in its threads."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable

from gateway.storage.crises import CrisisDay, CrisisRecord, day_of, oldest_kept
from gateway.storage.json_bodies import storable_text
from gateway.storage.sqlite.worker_thread import DatabaseThread

_log = logging.getLogger(__name__)

CRISIS_TABLES = (
    """CREATE TABLE crises (
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        user TEXT,
        at REAL NOT NULL,
        level INTEGER NOT NULL,
        override TEXT NOT NULL,
        path TEXT NOT NULL,
        reason TEXT NOT NULL,
        completed INTEGER NOT NULL,
        llm_failed INTEGER NOT NULL,
        kept_until REAL,
        kept_because TEXT
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX crises_at ON crises(at)",
    """CREATE TABLE crisis_days (
        day TEXT NOT NULL,
        level INTEGER NOT NULL,
        path TEXT NOT NULL,
        events INTEGER NOT NULL,
        llm_failures INTEGER NOT NULL,
        completed INTEGER NOT NULL,
        PRIMARY KEY (day, level, path)
    ) STRICT, WITHOUT ROWID""",
)
"""A step of `steps.MIGRATIONS`, and as every released step never edited."""

_COLUMNS = "id, session, user, at, level, override, path, reason, completed, llm_failed"
_ALL = f"{_COLUMNS}, kept_until, kept_because"
_ADD = f"INSERT INTO crises ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608 - a constant
_COUNT = """INSERT INTO crisis_days (day, level, path, events, llm_failures, completed)
    VALUES (?, ?, ?, 1, ?, ?)
    ON CONFLICT (day, level, path) DO UPDATE SET events = events + 1,
        llm_failures = llm_failures + excluded.llm_failures, completed = completed + excluded.completed"""
_COUNT_FAILURE = """INSERT INTO crisis_days (day, level, path, events, llm_failures, completed)
    VALUES (?, ?, 'deterministic', 0, 1, 0)
    ON CONFLICT (day, level, path) DO UPDATE SET llm_failures = llm_failures + 1"""
_LISTED = f"SELECT {_ALL} FROM crises ORDER BY at DESC, id DESC LIMIT ?"  # noqa: S608 - a constant
_DAYS = "SELECT day, level, path, events, llm_failures, completed FROM crisis_days ORDER BY day, level, path"
_KEEP = "UPDATE crises SET kept_until = ?, kept_because = ? WHERE id = ?"
_FORGET = "UPDATE crises SET user = NULL WHERE user = ?"
_PRUNE = "DELETE FROM crises WHERE at < ? AND (kept_until IS NULL OR kept_until < ?)"


def add(db: sqlite3.Connection, record: CrisisRecord) -> None:
    """Add a record and count it, unless it is there, in the caller's transaction. A fault of these tables
    alone takes nothing else from it: the response is more important than its record."""
    db.execute("SAVEPOINT crisis")
    try:
        _add(db, record)
    except (sqlite3.IntegrityError, sqlite3.OperationalError, sqlite3.DataError):
        db.execute("ROLLBACK TO crisis")
        _log.exception("a crisis response has no record")
    finally:
        db.execute("RELEASE crisis")


def _add(db: sqlite3.Connection, record: CrisisRecord) -> None:
    values = (
        record.id,
        record.session,
        None if record.user is None else storable_text(record.user),
        record.at,
        record.level,
        record.override,
        record.path,
        record.reason,
        record.completed,
        record.llm_failed,
    )
    if db.execute(_ADD, values).rowcount > 0:
        counted = (day_of(record.at), record.level, record.path, record.llm_failed, record.completed)
        db.execute(_COUNT, counted)


class SqliteCrises:
    """The records in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def count_failure(self, *, at: float, level: int) -> None:
        await self._writer().submit(lambda db: db.execute(_COUNT_FAILURE, (day_of(at), level)))

    async def listed(self, *, limit: int) -> tuple[CrisisRecord, ...]:
        rows = await self._reader().submit(lambda db: db.execute(_LISTED, (limit,)).fetchall())
        return tuple(_record(row) for row in rows)

    async def days(self) -> tuple[CrisisDay, ...]:
        rows = await self._reader().submit(lambda db: db.execute(_DAYS).fetchall())
        names = ("day", "level", "path", "events", "llm_failures", "completed")
        return tuple(CrisisDay(**dict(zip(names, row, strict=True))) for row in rows)

    async def keep(self, record_id: str, *, until: float, because: str) -> bool:
        values = (until, storable_text(because), record_id)
        return await self._writer().submit(lambda db: db.execute(_KEEP, values).rowcount > 0)

    async def forget(self, user: str) -> None:
        await self._writer().submit(lambda db: db.execute(_FORGET, (storable_text(user),)).rowcount)

    async def prune(self, *, now: float) -> int:
        values = (oldest_kept(now), now)
        return await self._writer().submit(lambda db: db.execute(_PRUNE, values).rowcount)


def _record(row: tuple[object, ...]) -> CrisisRecord:
    fields = dict(zip(_ALL.split(", "), row, strict=True))
    fields |= {name: bool(fields[name]) for name in ("completed", "llm_failed")}
    return CrisisRecord(**fields)  # type: ignore[arg-type]  # the table's types are strict
