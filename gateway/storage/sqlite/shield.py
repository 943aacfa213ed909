"""SQL on what conversations have read, what people have allowed and were asked, and the evaluator's calls."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from gateway.storage.json_bodies import storable_text
from gateway.storage.shield import HOUR_S
from gateway.storage.sqlite.audit import SqliteAudit
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.shield.levels import UNLABELLED, Labels, Level
from pipeline.shield.ports import Permission

_READ = "SELECT level, private, sources, suspects FROM taints WHERE session_id = ?"
_WRITE = """INSERT INTO taints (session_id, level, private, sources, suspects) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (session_id) DO UPDATE SET level = ?2, private = ?3, sources = ?4, suspects = ?5"""
_COLUMNS = "id, session_id, thread, person, type, target, foreign_text, level, private, at"
_ADD = f"""INSERT INTO permissions ({_COLUMNS}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (session_id, person, type, target) DO UPDATE SET thread = excluded.thread,
        foreign_text = excluded.foreign_text, level = excluded.level, private = excluded.private,
        at = excluded.at
    RETURNING id"""  # noqa: S608 - a constant
_OF = f"SELECT {_COLUMNS} FROM permissions WHERE session_id = ? AND person = ? ORDER BY id"  # noqa: S608 - a constant
_REVOKE = "DELETE FROM permissions WHERE session_id = ? AND person = ?"
_ASKED_LONG_AGO = "DELETE FROM asked WHERE at <= ?"
_ASKED_LATER = "UPDATE asked SET at = ?1 WHERE at > ?1"
_ASKED = """INSERT INTO asked (question, person, at) SELECT :question, :person, :now
    WHERE (SELECT count(*) FROM asked WHERE person = :person) < :most ON CONFLICT DO NOTHING"""
_WAS_ASKED = "SELECT 1 FROM asked WHERE question = ?"
_NOT_ASKED = "DELETE FROM asked WHERE person = ?"
_REVOKE_ONE = f"{_REVOKE} AND id = ?"
_TAKE = """INSERT INTO evaluator_calls (day, calls) SELECT ?1, 1 WHERE ?2 > 0
    ON CONFLICT (day) DO UPDATE SET calls = calls + 1 WHERE calls < ?2"""
_FORGET = "DELETE FROM evaluator_calls WHERE day < date(?, '-31 days')"
"""Not the days right before: a clock that was set back must not begin one again."""


class SqliteShield:
    """What the shield stores, in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        self.audit = SqliteAudit(writer, reader)
        self.taints = SqliteTaints(writer, reader)
        self.permissions = SqlitePermissions(writer, reader)
        self.evaluator_calls = SqliteEvaluatorCalls(writer)
        self.asked = SqliteAsked(writer)


class SqliteTaints:
    """What conversations have read, in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def read(self, session_id: str) -> Labels:
        row = await self._reader().submit(lambda db: db.execute(_READ, (session_id,)).fetchone())
        if row is None:
            return UNLABELLED
        return Labels(
            level=Level(row[0]),
            private=bool(row[1]),
            sources=tuple(json.loads(row[2])),
            suspects=tuple(json.loads(row[3])),
        )

    async def write(self, session_id: str, labels: Labels) -> None:
        lists = (_stored(labels.sources), _stored(labels.suspects))
        values = (session_id, int(labels.level), labels.private, *lists)
        await self._writer().submit(lambda db: db.execute(_WRITE, values).rowcount)


class SqlitePermissions:
    """What people have allowed, in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        self._writer = writer
        self._reader = reader

    async def add(self, permission: Permission) -> int:
        values = (
            permission.session_id,
            permission.thread,
            storable_text(permission.person),
            permission.type,
            storable_text(permission.target),
            _stored(permission.foreign),
            permission.level,
            permission.private,
            permission.at,
        )
        return await self._writer().submit(lambda db: int(db.execute(_ADD, values).fetchone()[0]))

    async def of(self, session_id: str, person: str) -> tuple[Permission, ...]:
        values = (session_id, storable_text(person))
        rows = await self._reader().submit(lambda db: db.execute(_OF, values).fetchall())
        return tuple(map(_permission, rows))

    async def revoke(self, session_id: str, person: str, permission_id: int | None) -> int:
        values: tuple[str | int, ...] = (session_id, storable_text(person))

        def work(db: sqlite3.Connection) -> int:
            if permission_id is None:
                return db.execute(_REVOKE, values).rowcount
            return db.execute(_REVOKE_ONE, (*values, permission_id)).rowcount

        return await self._writer().submit(work)


class SqliteEvaluatorCalls:
    """How often the evaluator was asked, in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread]) -> None:
        self._writer = writer

    async def take(self, day: str, most: int) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            db.execute(_FORGET, (day,))
            return db.execute(_TAKE, (day, most)).rowcount == 1

        return await self._writer().submit(work)


class SqliteAsked:
    """How often people were asked, in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread]) -> None:
        self._writer = writer

    async def count(self, person: str, question: str, *, now: float, most: int) -> bool:
        values = {"person": storable_text(person), "question": question, "now": now, "most": most}

        def work(db: sqlite3.Connection) -> bool:
            db.execute(_ASKED_LONG_AGO, (now - HOUR_S,))
            db.execute(_ASKED_LATER, (now,))
            db.execute(_ASKED, values)
            return db.execute(_WAS_ASKED, (question,)).fetchone() is not None

        return await self._writer().submit(work)

    async def forget(self, person: str) -> None:
        values = (storable_text(person),)
        await self._writer().submit(lambda db: db.execute(_NOT_ASKED, values).rowcount)


def _stored(sources: tuple[str, ...]) -> str:
    return json.dumps([storable_text(source) for source in sources], ensure_ascii=False)


def _permission(row: tuple[int, str, str, str, str, str, str, int, int, float]) -> Permission:
    identity, session_id, thread, person, type_, target, foreign, level, private, at = row
    return Permission(
        id=identity,
        session_id=session_id,
        thread=thread,
        person=person,
        type=type_,
        target=target,
        foreign=tuple(json.loads(foreign)),
        level=level,
        private=bool(private),
        at=at,
    )
