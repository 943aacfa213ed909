"""The memory in one SQLite file: a part of `SqliteStore`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

from gateway.storage.memories import decode_arc, decode_fact, decode_held, require_valid, storable_owner
from gateway.storage.sqlite import memory_writing
from gateway.storage.sqlite.group_commit import GroupCommit
from gateway.storage.sqlite.memory_index import is_current, rows_of, writable_rows
from gateway.storage.sqlite.memory_writing import FACT, profile_of
from gateway.storage.sqlite.worker_thread import DatabaseThread, Work
from pipeline.memory.candidates import Held
from pipeline.memory.ports import FactVector, MemoryCounts, MemoryWrites, Question, Remembered, Written
from pipeline.memory.recall import find_arcs, find_by_words, joined, places_for_newest
from pipeline.memory.values import Fact, Profile, SessionArc
from pipeline.memory.vectors import nearest, packed

T = TypeVar("T")

_COUNTS = """
    SELECT (SELECT count(*) FROM memory_facts WHERE owner = ?1 AND live = 1),
        (SELECT count(*) FROM memory_arcs WHERE owner = ?1)"""
_NEWEST = f"{FACT} WHERE owner = ? AND live = 1 ORDER BY n DESC LIMIT ?"
_NEWEST_NUMBERS = "SELECT n FROM memory_facts WHERE owner = ? AND live = 1 ORDER BY n DESC LIMIT ?"
_ALL = f"{FACT} WHERE owner = ? ORDER BY n"
_THESE = f"{FACT} WHERE n IN (SELECT value FROM json_each(?))"  # noqa: S608 - a constant
_ARCS = """
    SELECT body FROM memory_arcs WHERE owner = ? AND ended_at >= ? ORDER BY ended_at DESC, n DESC LIMIT ?"""
_HELD = "SELECT body FROM memory_held WHERE owner = ? AND session = ? ORDER BY n"
_ALL_HELD = "SELECT body FROM memory_held WHERE owner = ? ORDER BY n"
_VECTORS = "SELECT fact, vector FROM memory_vectors WHERE owner = ? AND model = ? ORDER BY fact"
_WITHOUT_VECTOR = """
    SELECT owner, body, referenced_at, dormant_at, superseded_by
    FROM memory_facts JOIN memory_texts USING (n)
    WHERE live = 1 AND (model < ?1 OR model > ?1) LIMIT ?2"""
_EMBEDDED = "UPDATE memory_facts SET model = ? WHERE owner = ? AND id = ? AND live = 1 RETURNING n"
_PUT_VECTOR = """
    INSERT INTO memory_vectors (fact, owner, model, vector) VALUES (?, ?, ?, ?)
    ON CONFLICT (fact) DO UPDATE SET model = excluded.model, vector = excluded.vector"""
_ALL_ROWS = -1


class SqliteMemories:
    """A `MemoryBook`."""

    def __init__(
        self,
        writer: Callable[[], DatabaseThread],
        reader: Callable[[], DatabaseThread],
        group_commit: GroupCommit,
    ) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader
        self._group_commit = group_commit
        self._added: Callable[[], None] | None = None

    async def counts(self, owner: str) -> MemoryCounts:
        def work(db: sqlite3.Connection) -> MemoryCounts:
            facts, arcs = db.execute(_COUNTS, (storable_owner(owner),)).fetchone()
            return MemoryCounts(
                facts=facts, arcs=arcs, rules=len(profile_of(db, storable_owner(owner)).rules)
            )

        return await self._reader().submit(work)

    async def facts(self, owner: str, *, limit: int | None = None) -> tuple[Fact, ...]:
        values = (storable_owner(owner), _ALL_ROWS if limit is None else limit)
        return await self._read(_facts, _NEWEST, values)

    async def find_facts(self, owner: str, question: Question, *, limit: int) -> tuple[Fact, ...]:
        key = storable_owner(owner)
        if not await self._reader().submit(lambda db: is_current(db, key)):
            await self._writer().submit(lambda db: writable_rows(db, key))
        return await self._reader().submit(lambda db: _find(db, key, question, limit))

    async def everything(self, owner: str) -> Remembered:
        key = storable_owner(owner)

        def work(db: sqlite3.Connection) -> Remembered:
            return Remembered(
                facts=_facts(db, _ALL, (key,)),
                arcs=tuple(reversed(_arcs(db, (key, 0.0, _ALL_ROWS)))),
                held=tuple(decode_held(row[0]) for row in db.execute(_ALL_HELD, (key,))),
                profile=profile_of(db, key),
            )

        return await self._reader().submit(work)

    async def arcs(
        self, owner: str, *, since: float = 0.0, limit: int | None = None
    ) -> tuple[SessionArc, ...]:
        values = (storable_owner(owner), since, _ALL_ROWS if limit is None else limit)
        return await self._reader().submit(lambda db: _arcs(db, values))

    async def find_arcs(
        self, owner: str, question: Question, *, since: float, limit: int
    ) -> tuple[SessionArc, ...]:
        return find_arcs(await self.arcs(owner, since=since), question.text, limit=limit)

    async def profile(self, owner: str) -> Profile:
        return await self._reader().submit(lambda db: profile_of(db, storable_owner(owner)))

    async def write_profile(self, owner: str, profile: Profile) -> Profile:
        key = storable_owner(owner)
        return await self._writer().submit(lambda db: memory_writing.put_profile(db, key, profile))

    async def write(self, owner: str, writes: MemoryWrites) -> Written:
        require_valid(writes)
        key = storable_owner(owner)
        written = await self._writer().submit(lambda db: memory_writing.write(db, key, writes))
        if written.facts and self._added is not None:
            self._added()
        return written

    async def held(self, owner: str, session_id: str) -> tuple[Held, ...]:
        def work(db: sqlite3.Connection) -> tuple[Held, ...]:
            values = (storable_owner(owner), storable_owner(session_id))
            return tuple(decode_held(row[0]) for row in db.execute(_HELD, values))

        return await self._reader().submit(work)

    async def forget(self, owner: str, item_ids: Sequence[str]) -> int:
        key = storable_owner(owner)
        return await self._forget(lambda db: memory_writing.forget(db, key, item_ids))

    async def forget_session(self, owner: str, session_id: str) -> int:
        key, session = storable_owner(owner), storable_owner(session_id)
        return await self._forget(lambda db: memory_writing.forget_session(db, key, session))

    async def erase(self, owner: str) -> int:
        key = storable_owner(owner)
        return await self._forget(lambda db: memory_writing.erase(db, key))

    async def prune(self, *, before: float) -> int:
        return await self._forget(lambda db: memory_writing.prune(db, before))

    def watch(self, added: Callable[[], None]) -> None:
        self._added = added

    async def without_vector(self, model: str, *, limit: int) -> tuple[tuple[str, Fact], ...]:
        def work(db: sqlite3.Connection) -> tuple[tuple[str, Fact], ...]:
            rows = db.execute(_WITHOUT_VECTOR, (model, limit)).fetchall()
            return tuple((owner, decode_fact(*row)) for owner, *row in rows)

        return await self._reader().submit(work)

    async def write_vectors(self, model: str, vectors: Sequence[FactVector]) -> None:
        rows = [(storable_owner(one.owner), one.fact_id, packed(one.vector)) for one in vectors]

        def work(db: sqlite3.Connection) -> None:
            for owner, fact_id, vector in rows:
                found = db.execute(_EMBEDDED, (model, owner, fact_id)).fetchall()
                for (number,) in found:
                    db.execute(_PUT_VECTOR, (number, owner, model, vector))

        await self._writer().submit(work)

    async def _read(
        self,
        work: Callable[[sqlite3.Connection, str, tuple[object, ...]], T],
        sql: str,
        values: tuple[object, ...],
    ) -> T:
        return await self._reader().submit(lambda db: work(db, sql, values))

    async def _forget(self, work: Work[int]) -> int:
        def forget(db: sqlite3.Connection) -> int:
            gone = work(db)
            self._group_commit.forgot = self._group_commit.forgot or gone > 0
            return gone

        return await self._writer().submit(forget)


def _find(db: sqlite3.Connection, owner: str, question: Question, limit: int) -> tuple[Fact, ...]:
    rows = rows_of(db, owner)
    if rows is None:
        return ()
    hits = find_by_words(rows, question.text, limit=limit)
    near: tuple[tuple[int, float], ...] = ()
    if question.vector:
        stored = db.execute(_VECTORS, (owner, question.vector_model)).fetchall()
        near = nearest(question.vector, stored, limit=limit)
    most = places_for_newest(question.text, hits, near)
    newest = [row[0] for row in db.execute(_NEWEST_NUMBERS, (owner, most))] if most else []
    numbers = joined(hits, near, newest, limit=limit)
    found = {row[0]: decode_fact(*row[1:]) for row in db.execute(_THESE, (json.dumps(numbers),))}
    return tuple(found[number] for number in numbers)


def _facts(db: sqlite3.Connection, sql: str, values: tuple[object, ...]) -> tuple[Fact, ...]:
    return tuple(decode_fact(*row[1:]) for row in db.execute(sql, values))


def _arcs(db: sqlite3.Connection, values: tuple[str, float, int]) -> tuple[SessionArc, ...]:
    return tuple(decode_arc(row[0]) for row in db.execute(_ARCS, values))
