"""The memory in a Postgres database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.storage.memories import decode_arc, decode_fact, decode_held, require_valid
from gateway.storage.postgres import memory_writing
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.memory_index import hits_of, is_current, writable_rows
from gateway.storage.postgres.memory_writing import FACT, profile_of
from gateway.storage.postgres.statements import memory_key
from pipeline.memory.candidates import Held
from pipeline.memory.ports import FactVector, MemoryCounts, MemoryWrites, Question, Remembered, Written
from pipeline.memory.recall import find_arcs, joined, places_for_newest
from pipeline.memory.values import Fact, Profile, SessionArc
from pipeline.memory.vectors import nearest, packed

_COUNTS = """
    SELECT (SELECT count(*) FROM memory_facts WHERE owner = $1 AND live) AS facts,
        (SELECT count(*) FROM memory_arcs WHERE owner = $1) AS arcs"""
_NEWEST = f"{FACT} WHERE owner = $1 AND live ORDER BY n DESC LIMIT $2"
_NEWEST_NUMBERS = "SELECT n FROM memory_facts WHERE owner = $1 AND live ORDER BY n DESC LIMIT $2"
_ALL = f"{FACT} WHERE owner = $1 ORDER BY n"
_THESE = f"{FACT} WHERE n = ANY($1::bigint[])"
_ARCS = """
    SELECT body FROM memory_arcs WHERE owner = $1 AND ended_at >= $2
    ORDER BY ended_at DESC, n DESC LIMIT $3"""
_HELD = "SELECT body FROM memory_held WHERE owner = $1 AND session = $2 ORDER BY n"
_ALL_HELD = "SELECT body FROM memory_held WHERE owner = $1 ORDER BY n"
_VECTORS = "SELECT fact, vector FROM memory_vectors WHERE owner = $1 AND model = $2 ORDER BY fact"
_WITHOUT_VECTOR = """
    SELECT owner, body, referenced_at, dormant_at, superseded_by
    FROM memory_facts JOIN memory_texts USING (n)
    WHERE live AND (model < $1 OR model > $1) LIMIT $2"""
_EMBEDDED = "UPDATE memory_facts SET model = $1 WHERE owner = $2 AND id = $3 AND live RETURNING n"
_PUT_VECTOR = """
    INSERT INTO memory_vectors (fact, owner, model, vector) VALUES ($1, $2, $3, $4)
    ON CONFLICT (fact) DO UPDATE SET model = excluded.model, vector = excluded.vector"""


class PostgresMemories:
    """A `MemoryBook`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._added: Callable[[], None] | None = None

    async def counts(self, owner: str) -> MemoryCounts:
        key = memory_key(owner)

        async def query(db: Connection) -> MemoryCounts:
            ((facts, arcs),) = await db.fetch(_COUNTS, key)
            rules = len((await profile_of(db, key)).rules)
            return MemoryCounts(facts=facts, arcs=arcs, rules=rules)

        return await self._database.read(query)

    async def facts(self, owner: str, *, limit: int | None = None) -> tuple[Fact, ...]:
        key = memory_key(owner)
        return await self._database.read(lambda db: _facts(db, _NEWEST, key, limit))

    async def find_facts(self, owner: str, question: Question, *, limit: int) -> tuple[Fact, ...]:
        key = memory_key(owner)
        if not await self._database.read(lambda db: is_current(db, key)):
            await self._database.write(lambda db: _index_again(db, key))
        return await self._database.read(lambda db: _find(db, key, question, limit))

    async def everything(self, owner: str) -> Remembered:
        key = memory_key(owner)

        async def query(db: Connection) -> Remembered:
            return Remembered(
                facts=await _facts(db, _ALL, key),
                arcs=tuple(reversed(await _arcs(db, key, 0.0, None))),
                held=tuple([decode_held(row["body"]) for row in await db.fetch(_ALL_HELD, key)]),
                profile=await profile_of(db, key),
            )

        return await self._database.read(query)

    async def arcs(
        self, owner: str, *, since: float = 0.0, limit: int | None = None
    ) -> tuple[SessionArc, ...]:
        key = memory_key(owner)
        return await self._database.read(lambda db: _arcs(db, key, since, limit))

    async def find_arcs(
        self, owner: str, question: Question, *, since: float, limit: int
    ) -> tuple[SessionArc, ...]:
        return find_arcs(await self.arcs(owner, since=since), question.text, limit=limit)

    async def profile(self, owner: str) -> Profile:
        key = memory_key(owner)
        return await self._database.read(lambda db: profile_of(db, key))

    async def write_profile(self, owner: str, profile: Profile) -> Profile:
        key = memory_key(owner)
        return await self._database.write(lambda db: memory_writing.put_profile(db, key, profile))

    async def write(self, owner: str, writes: MemoryWrites) -> Written:
        require_valid(writes)
        key = memory_key(owner)
        written = await self._database.write(lambda db: memory_writing.write(db, key, writes))
        if written.facts and self._added is not None:
            self._added()
        return written

    async def held(self, owner: str, session_id: str) -> tuple[Held, ...]:
        values = (memory_key(owner), memory_key(session_id))
        rows = await self._database.read(lambda db: db.fetch(_HELD, *values))
        return tuple(decode_held(row["body"]) for row in rows)

    async def forget(self, owner: str, item_ids: Sequence[str]) -> int:
        key = memory_key(owner)
        return await self._database.write(lambda db: memory_writing.forget(db, key, item_ids))

    async def forget_session(self, owner: str, session_id: str) -> int:
        key, session = memory_key(owner), memory_key(session_id)
        return await self._database.write(lambda db: memory_writing.forget_session(db, key, session))

    async def erase(self, owner: str) -> int:
        key = memory_key(owner)
        return await self._database.write(lambda db: memory_writing.erase(db, key))

    async def prune(self, *, before: float) -> int:
        return await self._database.write(lambda db: memory_writing.prune(db, before))

    def watch(self, added: Callable[[], None]) -> None:
        self._added = added

    async def without_vector(self, model: str, *, limit: int) -> tuple[tuple[str, Fact], ...]:
        rows = await self._database.read(lambda db: db.fetch(_WITHOUT_VECTOR, model, limit))
        return tuple((row["owner"], decode_fact(*tuple(row)[1:])) for row in rows)

    async def write_vectors(self, model: str, vectors: Sequence[FactVector]) -> None:
        new = [(memory_key(one.owner), one.fact_id, packed(one.vector)) for one in vectors]

        async def change(db: Connection) -> None:
            for owner, fact_id, vector in sorted(new):
                for row in await db.fetch(_EMBEDDED, model, owner, fact_id):
                    await db.execute(_PUT_VECTOR, row["n"], owner, model, vector)

        await self._database.write(change)


async def _index_again(db: Connection, owner: str) -> None:
    await memory_writing.hold(db, owner)
    await writable_rows(db, owner)


async def _find(db: Connection, owner: str, question: Question, limit: int) -> tuple[Fact, ...]:
    hits = await hits_of(db, owner, question.text, limit=limit)
    near: tuple[tuple[int, float], ...] = ()
    if question.vector:
        rows = await db.fetch(_VECTORS, owner, question.vector_model)
        stored = [(row["fact"], bytes(row["vector"])) for row in rows]
        near = nearest(question.vector, stored, limit=limit)
    most = places_for_newest(question.text, hits, near)
    newest = [row["n"] for row in await db.fetch(_NEWEST_NUMBERS, owner, most)] if most else []
    numbers = joined(hits, near, newest, limit=limit)
    if not numbers:
        return ()
    found = {row["n"]: decode_fact(*tuple(row)[1:]) for row in await db.fetch(_THESE, numbers)}
    return tuple(found[number] for number in numbers)


async def _facts(db: Connection, sql: str, *values: object) -> tuple[Fact, ...]:
    return tuple([decode_fact(*tuple(row)[1:]) for row in await db.fetch(sql, *values)])


async def _arcs(db: Connection, owner: str, since: float, limit: int | None) -> tuple[SessionArc, ...]:
    return tuple([decode_arc(row["body"]) for row in await db.fetch(_ARCS, owner, since, limit)])
