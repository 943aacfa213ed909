"""SQL that writes and deletes what is remembered of an owner, in the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from gateway.storage.memories import (
    decode_fact,
    decode_profile,
    encode_arc,
    encode_held,
    encode_profile,
    next_profile,
    renewed,
    same_statement,
    storable_owner,
    without_rules,
)
from gateway.storage.sqlite.memory_index import SqliteFactRows, rows_of, writable_rows
from gateway.storage.sqlite.secure_overwrite import filled
from pipeline.memory.ports import MemoryWrites, Written
from pipeline.memory.values import Fact, Profile

FACT = """SELECT n, body, referenced_at, dormant_at, superseded_by
    FROM memory_facts JOIN memory_texts USING (n)"""
"""The columns of `_numbered`."""
_SAME_TRIPLE = f"{FACT} WHERE owner = ? AND triple = ? AND live = 1 ORDER BY n"
_BY_ID = f"{FACT} WHERE owner = ? AND id = ?"
_REPLACED_BY = "SELECT n, id FROM memory_facts WHERE owner = ? AND superseded_by = ?"
_OF_SESSION = "SELECT n FROM memory_facts WHERE owner = ? AND session = ?"
_OF_OWNER = "SELECT n FROM memory_facts WHERE owner = ?"
_OLD = "SELECT n, owner FROM memory_facts WHERE referenced_at < ?"
_NOTE = "INSERT INTO memory_writes (owner, key, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_PROFILE = "SELECT body FROM memory_profiles WHERE owner = ?"
_PROFILE_SIZE = "SELECT length(CAST(body AS BLOB)) FROM memory_profiles WHERE owner = ?"
_PUT_PROFILE = """
    INSERT INTO memory_profiles (owner, revision, body) VALUES (?, ?, ?)
    ON CONFLICT (owner) DO UPDATE SET revision = excluded.revision, body = excluded.body"""
_BLANK_PROFILE = "UPDATE memory_profiles SET body = ? WHERE owner = ?"
_PUT_ARC = "INSERT INTO memory_arcs (owner, session, ended_at, body) VALUES (?, ?, ?, ?)"
_HOLD = """
    INSERT INTO memory_held (owner, session, id, at, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_COPY_ARCS = """
    INSERT INTO memory_arcs (owner, session, ended_at, body)
    SELECT ?, session, ended_at, body FROM memory_arcs WHERE owner = ? ORDER BY n"""
_COPY_PROFILE = """
    INSERT INTO memory_profiles (owner, revision, body)
    SELECT ?, revision, body FROM memory_profiles WHERE owner = ?"""
_DROP_OWNER = "DELETE FROM memory_owners WHERE owner = ?"
_DROP_KEYS = "DELETE FROM memory_writes WHERE owner = ?"
_DROP_OLD_KEYS = "DELETE FROM memory_writes WHERE at < ?"


def profile_of(db: sqlite3.Connection, owner: str) -> Profile:
    """The stored profile, or an empty one."""
    row = db.execute(_PROFILE, (owner,)).fetchone()
    return Profile() if row is None else decode_profile(row[0])


def put_profile(db: sqlite3.Connection, owner: str, profile: Profile) -> Profile:
    """Store a profile; as stored. Raises ProfileChanged."""
    new = next_profile(profile_of(db, owner), profile)
    _set_profile(db, owner, new)
    return new


def write(db: sqlite3.Connection, owner: str, writes: MemoryWrites) -> Written:
    """See `MemoryBook.write`. Raises ProfileChanged."""
    if not db.execute(_NOTE, (owner, storable_owner(writes.key), writes.at)).rowcount:
        return Written(repeated=True)
    stored = profile_of(db, owner)
    if writes.profile is not None:
        stored = put_profile(db, owner, writes.profile)
    session = storable_owner(writes.session_id)
    if not stored.enabled:
        if writes.ends_session:
            _drop(db, "memory_held", "owner = ? AND session = ?", (owner, session))
        return Written(disabled=True)
    rows = writable_rows(db, owner)
    written = _write_facts(db, owner, rows, writes)
    for one in writes.held:
        db.execute(_HOLD, (owner, session, one.candidate.id, writes.at, encode_held(one)))
    if writes.arc is not None:
        ended = storable_owner(writes.arc.session_id)
        _drop(db, "memory_arcs", "owner = ? AND session = ?", (owner, ended))
        db.execute(_PUT_ARC, (owner, ended, writes.arc.ended_at, encode_arc(writes.arc)))
    if writes.ends_session:
        _drop(db, "memory_held", "owner = ? AND session = ?", (owner, session))
    return written


def _write_facts(db: sqlite3.Connection, owner: str, rows: SqliteFactRows, writes: MemoryWrites) -> Written:
    stored_as: dict[str, str] = {}
    added = again = 0
    for fact in writes.facts:
        known = _numbered(db, _SAME_TRIPLE, (owner, rows.triple(fact)))
        same = same_statement(fact, (one for _, one in known)) or _by_id(db, owner, fact.id)
        if same is None:
            rows.add(fact)
            added += 1
            continue
        stored_as[fact.id] = same.id
        _mark(db, owner, rows, renewed(same, writes.at))
        again += 1
    for old_id, new_id in writes.supersedes:
        old, new = _by_id(db, owner, old_id), stored_as.get(new_id, new_id)
        if old is not None and old.id != new:
            _mark(db, owner, rows, replace(old, superseded_by=new))
    for fact_id in writes.dormant:
        if (known_fact := _by_id(db, owner, fact_id)) is not None:
            _mark(db, owner, rows, replace(known_fact, dormant_at=writes.at))
    return Written(facts=added, renewed=again)


def forget(db: sqlite3.Connection, owner: str, ids: Sequence[str]) -> int:
    """Delete facts, with those that they have replaced, arcs, rules and candidates; how many there were."""
    numbers: dict[int, None] = {}
    gone = 0
    for item in dict.fromkeys(ids):
        facts = _numbered(db, _BY_ID, (owner, item))
        gone += len(facts)
        numbers.update(dict.fromkeys(number for number, _ in facts))
        if facts:
            numbers.update(dict.fromkeys(_replaced(db, owner, item)))
        gone += _drop(db, "memory_arcs", "owner = ? AND session = ?", (owner, storable_owner(item)))
        gone += _drop(db, "memory_held", "owner = ? AND id = ?", (owner, item))
    _delete_facts(db, owner, list(numbers))
    profile, rules = without_rules(profile_of(db, owner), frozenset(ids))
    if rules:
        _set_profile(db, owner, profile)
    return gone + rules


def _replaced(db: sqlite3.Connection, owner: str, fact_id: str) -> list[int]:
    """The numbers of all facts that the fact has replaced, directly or not."""
    found: dict[int, None] = {}
    waiting = [fact_id]
    while waiting:
        for number, replaced in db.execute(_REPLACED_BY, (owner, waiting.pop())).fetchall():
            if number not in found:
                found[number] = None
                waiting.append(replaced)
    return list(found)


def forget_session(db: sqlite3.Connection, owner: str, session: str) -> int:
    """Delete the facts, the candidates and the arc of a session; how many."""
    numbers = [row[0] for row in db.execute(_OF_SESSION, (owner, session))]
    _delete_facts(db, owner, numbers)
    gone = len(numbers)
    for table in ("memory_arcs", "memory_held"):
        gone += _drop(db, table, "owner = ? AND session = ?", (owner, session))
    return gone


def erase(db: sqlite3.Connection, owner: str) -> int:
    """Delete everything of the owner; how many items."""
    numbers = [row[0] for row in db.execute(_OF_OWNER, (owner,))]
    _delete_facts(db, owner, numbers)
    profile = profile_of(db, owner)
    gone = len(numbers) + len(profile.rules) + len(profile.archived_rules)
    for table in ("memory_arcs", "memory_held"):
        gone += _drop(db, table, "owner = ?", (owner,))
    gone += _drop(db, "memory_profiles", "owner = ?", (owner,), key="owner")
    for statement in (_DROP_OWNER, _DROP_KEYS):
        db.execute(statement, (owner,))
    return gone


def prune(db: sqlite3.Connection, before: float) -> int:
    """Delete what is older than a Unix time, of all owners; how many."""
    old: dict[str, list[int]] = {}
    for number, owner in db.execute(_OLD, (before,)):
        old.setdefault(owner, []).append(number)
    for owner, numbers in old.items():
        _delete_facts(db, owner, numbers)
    gone = sum(map(len, old.values()))
    gone += _drop(db, "memory_arcs", "ended_at < ?", (before,))
    gone += _drop(db, "memory_held", "at < ?", (before,))
    db.execute(_DROP_OLD_KEYS, (before,))
    return gone


def _delete_facts(db: sqlite3.Connection, owner: str, numbers: Sequence[int]) -> None:
    rows = rows_of(db, owner)
    if rows is not None:
        rows.delete(numbers)


def _set_profile(db: sqlite3.Connection, owner: str, profile: Profile) -> None:
    size = db.execute(_PROFILE_SIZE, (owner,)).fetchone()
    if size is not None:
        # Before a longer body takes its place, for which SQLite may move the row and leave a copy.
        db.execute(_BLANK_PROFILE, (filled("", size[0]), owner))
    body = filled(encode_profile(profile), size[0] if size else 0)
    db.execute(_PUT_PROFILE, (owner, profile.revision, body))


def _drop(
    db: sqlite3.Connection, table: str, where: str, values: tuple[object, ...], *, key: str = "n"
) -> int:
    """Overwrite the bodies of these rows, and delete them; how many."""
    sizes = f"SELECT {key}, length(CAST(body AS BLOB)) FROM {table} WHERE {where}"  # noqa: S608 - constants of this module
    rows = db.execute(sizes, values).fetchall()
    for row, size in rows:
        db.execute(f"UPDATE {table} SET body = ? WHERE {key} = ?", (filled("", size), row))  # noqa: S608 - as above
    for row, _ in rows:
        db.execute(f"DELETE FROM {table} WHERE {key} = ?", (row,))  # noqa: S608 - as above
    return len(rows)


def _by_id(db: sqlite3.Connection, owner: str, fact_id: str) -> Fact | None:
    found = _numbered(db, _BY_ID, (owner, fact_id))
    return found[0][1] if found else None


def _mark(db: sqlite3.Connection, owner: str, rows: SqliteFactRows, fact: Fact) -> None:
    number = _numbered(db, _BY_ID, (owner, fact.id))[0][0]
    rows.mark(number, fact)


def _numbered(db: sqlite3.Connection, sql: str, values: tuple[object, ...]) -> list[tuple[int, Fact]]:
    return [(row[0], decode_fact(*row[1:])) for row in db.execute(sql, values).fetchall()]


def copy(db: sqlite3.Connection, source: str, target: str) -> None:
    """Copy the facts, arcs and profile of the owner `source` to `target`, of whom nothing is kept."""
    if rows_of(db, source) is None and not profile_of(db, source).revision:
        return
    rows = writable_rows(db, target)
    for _, fact in _numbered(db, f"{FACT} WHERE owner = ? ORDER BY n", (source,)):
        rows.add(fact)
    db.execute(_COPY_ARCS, (target, source))
    db.execute(_COPY_PROFILE, (target, source))
