"""SQL on what conversations have read, what people have allowed and were asked, and the evaluator's calls."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

from gateway.storage.postgres.audit import PostgresAudit
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, lock, plain
from gateway.storage.shield import HOUR_S
from pipeline.shield.levels import UNLABELLED, Labels, Level
from pipeline.shield.ports import Permission

_READ = "SELECT level, private, sources, suspects FROM taints WHERE session_id = $1"
_WRITE = """
    INSERT INTO taints (session_id, level, private, sources, suspects) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (session_id) DO UPDATE SET level = excluded.level, private = excluded.private,
        sources = excluded.sources, suspects = excluded.suspects"""
_COLUMNS = "session_id, thread, person, type, target, foreign_text, level, private, at"
_ADD = f"""
    INSERT INTO permissions ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (session_id, person, type, target) DO UPDATE SET thread = excluded.thread,
        foreign_text = excluded.foreign_text, level = excluded.level, private = excluded.private,
        at = excluded.at
    RETURNING id"""  # noqa: S608 - a constant
_OF = f"SELECT id, {_COLUMNS} FROM permissions WHERE session_id = $1 AND person = $2 ORDER BY id"  # noqa: S608 - a constant
_REVOKE = """
    DELETE FROM permissions WHERE session_id = $1 AND person = $2 AND ($3::bigint IS NULL OR id = $3)"""
_ASKED_LONG_AGO = "DELETE FROM asked WHERE at <= $1"
_ASKED_LATER = "UPDATE asked SET at = $1 WHERE at > $1"
_ASKED = """
    INSERT INTO asked (question, person, at) SELECT $1, $2, $3
    WHERE (SELECT count(*) FROM asked WHERE person = $2) < $4 ON CONFLICT DO NOTHING"""
_WAS_ASKED = "SELECT 1 FROM asked WHERE question = $1"
_NOT_ASKED = "DELETE FROM asked WHERE person = $1"
# One statement: of two processes at once, the second counts what the first has counted.
_TAKE = """
    INSERT INTO evaluator_calls AS known (day, calls) SELECT $1, 1 WHERE $2::bigint > 0
    ON CONFLICT (day) DO UPDATE SET calls = known.calls + 1 WHERE known.calls < $2"""
_FORGET = "DELETE FROM evaluator_calls WHERE day < $1"
_KEPT_DAYS = timedelta(days=31)
"""Not only the day: a clock that was set back must not begin one again."""


class PostgresShield:
    """What the shield stores, in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self.audit = PostgresAudit(database)
        self.taints = PostgresTaints(database)
        self.permissions = PostgresPermissions(database)
        self.evaluator_calls = PostgresEvaluatorCalls(database)
        self.asked = PostgresAsked(database)


class PostgresTaints:
    """What conversations have read, in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, session_id: str) -> Labels:
        row = await self._database.read(lambda db: db.fetchrow(_READ, session_id))
        if row is None:
            return UNLABELLED
        return Labels(
            level=Level(row["level"]),
            private=row["private"],
            sources=tuple(json.loads(row["sources"])),
            suspects=tuple(json.loads(row["suspects"])),
        )

    async def write(self, session_id: str, labels: Labels) -> None:
        lists = (_stored(labels.sources), _stored(labels.suspects))
        values = (session_id, int(labels.level), bool(labels.private), *lists)

        async def change(db: Connection) -> None:
            await db.execute(_WRITE, *values)

        await self._database.write(change)


class PostgresPermissions:
    """What people have allowed, in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, permission: Permission) -> int:
        values = (
            permission.session_id,
            permission.thread,
            plain(permission.person),
            permission.type,
            plain(permission.target),
            _stored(permission.foreign),
            int(permission.level),
            bool(permission.private),
            permission.at,
        )

        async def change(db: Connection) -> int:
            return int(await db.fetchval(_ADD, *values))

        return await self._database.write(change)

    async def of(self, session_id: str, person: str) -> tuple[Permission, ...]:
        rows = await self._database.read(lambda db: db.fetch(_OF, session_id, plain(person)))
        return tuple(_permission(dict(row)) for row in rows)

    async def revoke(self, session_id: str, person: str, permission_id: int | None) -> int:
        async def change(db: Connection) -> int:
            return changed(await db.execute(_REVOKE, session_id, plain(person), permission_id))

        return await self._database.write(change)


class PostgresEvaluatorCalls:
    """How often the evaluator was asked by all processes, in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, day: str, most: int) -> bool:
        oldest = (date.fromisoformat(day) - _KEPT_DAYS).isoformat()

        async def change(db: Connection) -> bool:
            await db.execute(_FORGET, oldest)
            return changed(await db.execute(_TAKE, day, most)) == 1

        return await self._database.write(change)


class PostgresAsked:
    """How often people were asked, in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, person: str, question: str, *, now: float, most: int) -> bool:
        async def change(db: Connection) -> bool:
            await lock(db, "asked")
            await db.execute(_ASKED_LONG_AGO, now - HOUR_S)
            await db.execute(_ASKED_LATER, now)
            await db.execute(_ASKED, question, plain(person), now, most)
            return await db.fetchrow(_WAS_ASKED, question) is not None

        return await self._database.write(change)

    async def forget(self, person: str) -> None:
        async def change(db: Connection) -> None:
            await db.execute(_NOT_ASKED, plain(person))

        await self._database.write(change)


def _stored(sources: tuple[str, ...]) -> str:
    return json.dumps([plain(source) for source in sources], ensure_ascii=False)


def _permission(row: dict[str, Any]) -> Permission:
    foreign = tuple(json.loads(row.pop("foreign_text")))
    return Permission(foreign=foreign, **row)
