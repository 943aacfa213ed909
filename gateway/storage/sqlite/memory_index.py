"""SQL on the facts of one owner and their index: FTS5 over keyed hashes of terms.

The hashes differ from owner to owner, so a search meets the rows of its owner alone, and the index holds no
word. The statistics and the order are those of `pipeline.memory.recall`, as FTS5's own count all owners.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from hashlib import blake2b

from gateway.storage.memories import decode_fact, encode_fact
from gateway.storage.sqlite.secure_overwrite import filled
from pipeline.memory.recall import RankedFact, terms_of_fact
from pipeline.memory.values import Fact
from pipeline.memory.words import WORDS_VERSION

_SALT = "SELECT salt, words FROM memory_owners WHERE owner = ?"
_NEW_OWNER = (
    "INSERT INTO memory_owners (owner, salt, words) VALUES (?, randomblob(32), ?) ON CONFLICT DO NOTHING"
)
_SET_WORDS = "UPDATE memory_owners SET words = ? WHERE owner = ?"
_INDEX = "INSERT INTO memory_index (rowid, terms) VALUES (?, ?)"
_UNINDEX = "INSERT INTO memory_index (memory_index, rowid, terms) VALUES ('delete', ?, ?)"
_SIZE = "SELECT count(*) FROM memory_facts WHERE owner = ? AND live = 1"
_COUNT = "SELECT count(*) FROM memory_index WHERE memory_index MATCH ?"
_HAVING = "SELECT rowid FROM memory_index WHERE memory_index MATCH ? ORDER BY rowid DESC LIMIT ?"
_DOCUMENTS = """
    SELECT n, terms, session, turn FROM memory_facts
    WHERE n IN (SELECT value FROM json_each(?)) AND owner = ? AND live = 1"""
_BESIDE = """
    SELECT n, terms, session, turn FROM memory_facts
    WHERE owner = ? AND session = ? AND turn BETWEEN ? AND ? AND live = 1"""
_ADD = """
    INSERT INTO memory_facts
        (owner, id, session, turn, triple, live, referenced_at, dormant_at, superseded_by, terms)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_ADD_TEXT = "INSERT INTO memory_texts (n, body) VALUES (?, ?)"
_MARK = """
    UPDATE memory_facts SET live = ?, referenced_at = ?, dormant_at = ?, superseded_by = ? WHERE n = ?"""
_TEXT_SIZE = "SELECT length(CAST(body AS BLOB)) FROM memory_texts WHERE n = ?"
_OVERWRITE = "UPDATE memory_texts SET body = ? WHERE n = ?"
_DELETE_TEXT = "DELETE FROM memory_texts WHERE n = ?"
_DELETE = "DELETE FROM memory_facts WHERE n = ?"
_LIVE = "SELECT live, terms FROM memory_facts WHERE n = ?"
_DELETE_VECTOR = "DELETE FROM memory_vectors WHERE fact = ?"
_LIVE_ROWS = (
    "SELECT n, terms, body FROM memory_facts JOIN memory_texts USING (n) WHERE owner = ? AND live = 1"
)
_SET_TERMS = "UPDATE memory_facts SET terms = ? WHERE n = ?"


class SqliteFactRows:
    """The facts of one owner, in the caller's transaction; also the `FactIndex` of a search."""

    def __init__(self, db: sqlite3.Connection, owner: str, salt: bytes) -> None:
        self._db = db
        self._owner = owner
        self._salt = salt
        self._plain: dict[str, str] = {}

    # -- the FactIndex ------------------------------------------------------------------------
    def size(self) -> int:
        return int(self._db.execute(_SIZE, (self._owner,)).fetchone()[0])

    def frequency(self, term: str) -> int:
        return int(self._db.execute(_COUNT, (self._hash(term),)).fetchone()[0])

    def having(self, term: str, limit: int) -> Sequence[int]:
        return [row[0] for row in self._db.execute(_HAVING, (self._hash(term), limit))]

    def documents(self, numbers: Sequence[int]) -> Sequence[RankedFact]:
        rows = self._db.execute(_DOCUMENTS, (json.dumps(list(numbers)), self._owner))
        return [self._document(*row) for row in rows]

    def beside(self, found: Sequence[RankedFact]) -> Sequence[RankedFact]:
        turns = {(one.session_id, one.turn): None for one in found}
        rows: dict[int, tuple[int, str, str, int]] = {}
        for session, turn in turns:
            values = (self._owner, session, turn - 1, turn + 1)
            rows.update((row[0], row) for row in self._db.execute(_BESIDE, values))
        return [self._document(*row) for row in rows.values()]

    def _document(self, number: int, terms: str, session: str, turn: int) -> RankedFact:
        plain = self._plain
        known = tuple(plain.get(term, "") for term in terms.split())
        return RankedFact(number=number, terms=known, session_id=session, turn=turn)

    # -- writing ------------------------------------------------------------------------------
    def add(self, fact: Fact) -> int:
        """Add and index a fact; its number."""
        terms = self._hashed(fact)
        values = (
            *(self._owner, fact.id, fact.source_session_id, fact.source_turn_index, self.triple(fact)),
            *(fact.is_live, fact.last_referenced_at, fact.dormant_at, fact.superseded_by, terms),
        )
        number = int(self._db.execute(_ADD, values).lastrowid or 0)
        self._db.execute(_ADD_TEXT, (number, encode_fact(fact)))
        if fact.is_live:
            self._db.execute(_INDEX, (number, terms))
        return number

    def mark(self, number: int, fact: Fact) -> None:
        """Store when the fact was referenced and became dormant, and what replaced it."""
        live, terms = self._db.execute(_LIVE, (number,)).fetchone()
        if live and not fact.is_live:
            self._db.execute(_UNINDEX, (number, terms))
            self._db.execute(_DELETE_VECTOR, (number,))
        values = (fact.is_live, fact.last_referenced_at, fact.dormant_at, fact.superseded_by, number)
        self._db.execute(_MARK, values)

    def delete(self, numbers: Sequence[int]) -> None:
        """Delete facts, from the index too. Overwritten first, because a deletion may move rows, which leaves
        copies of their texts."""
        for number in numbers:
            live, terms = self._db.execute(_LIVE, (number,)).fetchone()
            if live:
                self._db.execute(_UNINDEX, (number, terms))
            size = self._db.execute(_TEXT_SIZE, (number,)).fetchone()[0]
            self._db.execute(_OVERWRITE, (filled("", size), number))
        for number in numbers:
            for statement in (_DELETE, _DELETE_TEXT, _DELETE_VECTOR):
                self._db.execute(statement, (number,))

    def index_again(self) -> None:
        """Make the terms of all live facts by the rules of this release."""
        for number, terms, body in self._db.execute(_LIVE_ROWS, (self._owner,)).fetchall():
            again = self._hashed(decode_fact(body))
            self._db.execute(_UNINDEX, (number, terms))
            self._db.execute(_SET_TERMS, (again, number))
            self._db.execute(_INDEX, (number, again))
        self._db.execute(_SET_WORDS, (WORDS_VERSION, self._owner))

    def triple(self, fact: Fact) -> str:
        """A hash of what makes two facts the same statement."""
        parts = [fact.subject.type, fact.subject.identifier, fact.predicate, fact.object.type]
        return self._hash(json.dumps([*parts, fact.object.identifier]))

    def _hashed(self, fact: Fact) -> str:
        return " ".join(self._hash(term) for term in terms_of_fact(fact))

    def _hash(self, term: str) -> str:
        digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8, key=self._salt).hexdigest()
        self._plain[digest] = term
        return digest


def rows_of(db: sqlite3.Connection, owner: str) -> SqliteFactRows | None:
    """The facts of an owner; None if nothing was ever stored."""
    found = db.execute(_SALT, (owner,)).fetchone()
    return None if found is None else SqliteFactRows(db, owner, found[0])


def is_current(db: sqlite3.Connection, owner: str) -> bool:
    """Whether the owner's terms were made by the rules of this release."""
    found = db.execute(_SALT, (owner,)).fetchone()
    return found is None or found[1] == WORDS_VERSION


def writable_rows(db: sqlite3.Connection, owner: str) -> SqliteFactRows:
    """The facts of an owner, who is added if needed, with the terms of this release."""
    db.execute(_NEW_OWNER, (owner, WORDS_VERSION))
    salt, words = db.execute(_SALT, (owner,)).fetchone()
    rows = SqliteFactRows(db, owner, salt)
    if words != WORDS_VERSION:
        rows.index_again()
    return rows
