"""SQL on the facts of one owner and their index: keyed hashes of terms in an array.

The hashes differ from owner to owner, so a search meets the rows of its owner alone, and the index holds no
word. The order is that of `pipeline.memory.recall`, which asks for rows one by one: `hits_of` reads what it
has asked for, and lets it begin again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from gateway.storage.memories import decode_fact, encode_fact
from gateway.storage.postgres.database import Connection
from pipeline.memory.recall import FactHit, RankedFact, find_by_words, terms_of_fact
from pipeline.memory.values import Fact
from pipeline.memory.words import WORDS_VERSION, terms_of_question

_SALT = "SELECT salt, words FROM memory_owners WHERE owner = $1"
_NEW_OWNER = "INSERT INTO memory_owners (owner, salt, words) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_SET_WORDS = "UPDATE memory_owners SET words = $1 WHERE owner = $2"
_SIZE = "SELECT count(*) FROM memory_facts WHERE owner = $1 AND live"
_HAVING = """
    SELECT term, ARRAY(
        SELECT n FROM memory_facts
        WHERE live AND string_to_array(terms, ' ') @> ARRAY[asked.term] AND owner = $2 ORDER BY n DESC
    ) AS numbers
    FROM unnest($1::text[]) AS asked (term)"""
_DOCUMENT = "SELECT n, terms, session, turn FROM memory_facts WHERE owner = $1 AND live AND "
_DOCUMENTS = f"{_DOCUMENT} n = ANY($2::bigint[])"
_BESIDE = f"""{_DOCUMENT} EXISTS (
    SELECT 1 FROM unnest($2::text[], $3::bigint[]) AS found (session, turn)
    WHERE found.session = memory_facts.session
        AND memory_facts.turn BETWEEN found.turn - 1 AND found.turn + 1)"""  # noqa: S608 - a constant
_ADD = """
    INSERT INTO memory_facts
        (owner, id, session, turn, triple, live, referenced_at, dormant_at, superseded_by, terms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING n"""
_ADD_TEXT = "INSERT INTO memory_texts (n, body) VALUES ($1, $2)"
_MARK = """
    UPDATE memory_facts SET live = $1, referenced_at = $2, dormant_at = $3, superseded_by = $4 WHERE n = $5"""
_DELETE = (
    "DELETE FROM memory_texts WHERE n = ANY($1::bigint[])",
    "DELETE FROM memory_facts WHERE n = ANY($1::bigint[])",
)
_DELETE_VECTORS = "DELETE FROM memory_vectors WHERE fact = ANY($1::bigint[])"
_LIVE_ROWS = "SELECT n, body FROM memory_facts JOIN memory_texts USING (n) WHERE owner = $1 AND live"
_SET_TERMS = "UPDATE memory_facts SET terms = $1 WHERE n = $2"


class PostgresFactRows:
    """The facts of one owner, in the caller's transaction."""

    def __init__(self, db: Connection, owner: str, salt: bytes) -> None:
        self._db = db
        self._owner = owner
        self._salt = salt

    async def add(self, fact: Fact) -> int:
        """Add and index a fact; its number."""
        values = (
            *(self._owner, fact.id, fact.source_session_id, fact.source_turn_index, self.triple(fact)),
            *(fact.is_live, fact.last_referenced_at, fact.dormant_at, fact.superseded_by, self._hashed(fact)),
        )
        number = int(await self._db.fetchval(_ADD, *values))
        await self._db.execute(_ADD_TEXT, number, encode_fact(fact))
        return number

    async def mark(self, number: int, fact: Fact) -> None:
        """Store when the fact was referenced and became dormant, and what replaced it."""
        if not fact.is_live:
            await self._db.execute(_DELETE_VECTORS, [number])
        values = (fact.is_live, fact.last_referenced_at, fact.dormant_at, fact.superseded_by, number)
        await self._db.execute(_MARK, *values)

    async def index_again(self) -> None:
        """Make the terms of all live facts by the rules of this release."""
        rows = await self._db.fetch(_LIVE_ROWS, self._owner)
        again = [(self._hashed(decode_fact(row["body"])), row["n"]) for row in rows]
        await self._db.executemany(_SET_TERMS, again)
        await self._db.execute(_SET_WORDS, WORDS_VERSION, self._owner)

    def triple(self, fact: Fact) -> str:
        """A hash of what makes two facts the same statement."""
        parts = [fact.subject.type, fact.subject.identifier, fact.predicate, fact.object.type]
        return hashed(self._salt, json.dumps([*parts, fact.object.identifier]))

    def _hashed(self, fact: Fact) -> str:
        return " ".join(hashed(self._salt, term) for term in terms_of_fact(fact))


async def delete(db: Connection, numbers: Sequence[int]) -> None:
    """Delete facts, with their texts and vectors, in the caller's transaction."""
    for statement in (*_DELETE, _DELETE_VECTORS):
        await db.execute(statement, list(numbers))


async def is_current(db: Connection, owner: str) -> bool:
    """Whether the owner's terms were made by the rules of this release."""
    found = await db.fetchrow(_SALT, owner)
    return found is None or found["words"] == WORDS_VERSION


async def writable_rows(db: Connection, owner: str) -> PostgresFactRows:
    """The facts of an owner, who is added if needed, with the terms of this release."""
    await db.execute(_NEW_OWNER, owner, secrets.token_bytes(32), WORDS_VERSION)
    ((salt, words),) = await db.fetch(_SALT, owner)
    rows = PostgresFactRows(db, owner, bytes(salt))
    if words != WORDS_VERSION:
        await rows.index_again()
    return rows


async def is_known(db: Connection, owner: str) -> bool:
    """Whether facts were ever stored of the owner."""
    return await db.fetchrow(_SALT, owner) is not None


async def hits_of(db: Connection, owner: str, question: str, *, limit: int) -> tuple[FactHit, ...]:
    """The facts of an owner that fit the question, best first."""
    found = await db.fetchrow(_SALT, owner)
    terms = list(terms_of_question(question))
    if found is None or not terms:
        return ()
    plain = {hashed(bytes(found["salt"]), term): term for term in terms}
    having = {plain[row["term"]]: row["numbers"] for row in await db.fetch(_HAVING, list(plain), owner)}
    if not any(having.values()):
        return ()
    read = _ReadFacts(await db.fetchval(_SIZE, owner), having)
    while True:
        try:
            return find_by_words(read, question, limit=limit)
        except _NotRead as missing:
            rows = await db.fetch(missing.statement, owner, *missing.values)
            read.rows[missing.name] = [_document(row, plain) for row in rows]


def hashed(salt: bytes, term: str) -> str:
    """A term as the index holds it."""
    return blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8, key=salt).hexdigest()


class _NotRead(Exception):
    """The ranking needs rows that are not read yet."""

    def __init__(self, name: str, statement: str, *values: Any) -> None:
        super().__init__(name)
        self.name = name
        self.statement = statement
        self.values = values


class _ReadFacts:
    """A `FactIndex` of what was read. For other rows it raises `_NotRead`."""

    def __init__(self, size: int, having: Mapping[str, Sequence[int]]) -> None:
        self._size = size
        self._having = having
        self.rows: dict[str, Sequence[RankedFact]] = {}

    def size(self) -> int:
        return self._size

    def frequency(self, term: str) -> int:
        return len(self._having[term])

    def having(self, term: str, limit: int) -> Sequence[int]:
        return self._having[term][:limit]

    def documents(self, numbers: Sequence[int]) -> Sequence[RankedFact]:
        return self._read("documents", _DOCUMENTS, list(numbers))

    def beside(self, found: Sequence[RankedFact]) -> Sequence[RankedFact]:
        turns = sorted({(one.session_id, one.turn) for one in found})
        return self._read("beside", _BESIDE, [turn[0] for turn in turns], [turn[1] for turn in turns])

    def _read(self, name: str, statement: str, *values: Any) -> Sequence[RankedFact]:
        if name not in self.rows:
            raise _NotRead(name, statement, *values)
        return self.rows[name]


def _document(row: Any, plain: dict[str, str]) -> RankedFact:
    terms: Iterable[str] = row["terms"].split()
    known = tuple(plain.get(term, "") for term in terms)
    return RankedFact(number=row["n"], terms=known, session_id=row["session"], turn=row["turn"])
