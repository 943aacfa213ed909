"""SQL that writes and deletes what is remembered of an owner, in the caller's transaction.

Every function that writes holds the owner's lock first: it reads what its writes depend on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.storage.memories import (
    decode_fact,
    decode_profile,
    encode_arc,
    encode_held,
    encode_profile,
    next_profile,
    renewed,
    same_statement,
    without_rules,
)
from gateway.storage.postgres.database import Connection
from gateway.storage.postgres.memory_index import PostgresFactRows, delete, is_known, writable_rows
from gateway.storage.postgres.statements import changed, lock, memory_key
from pipeline.memory.ports import MemoryWrites, Written
from pipeline.memory.values import Fact, Profile

FACT = """SELECT n, body, referenced_at, dormant_at, superseded_by
    FROM memory_facts JOIN memory_texts USING (n)"""
"""The columns of `_numbered`."""
_SAME_TRIPLE = f"{FACT} WHERE owner = $1 AND triple = $2 AND live ORDER BY n"
_BY_ID = f"{FACT} WHERE owner = $1 AND id = $2"
_REPLACED_BY = "SELECT n, id FROM memory_facts WHERE owner = $1 AND superseded_by = $2"
_OF_SESSION = "SELECT n FROM memory_facts WHERE owner = $1 AND session = $2"
_OF_OWNER = "SELECT n FROM memory_facts WHERE owner = $1"
_OLD = "SELECT n FROM memory_facts WHERE referenced_at < $1 ORDER BY n FOR UPDATE"
_NOTE = "INSERT INTO memory_writes (owner, key, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_PROFILE = "SELECT body FROM memory_profiles WHERE owner = $1"
_PUT_PROFILE = """
    INSERT INTO memory_profiles (owner, revision, body) VALUES ($1, $2, $3)
    ON CONFLICT (owner) DO UPDATE SET revision = excluded.revision, body = excluded.body"""
_PUT_ARC = """
    INSERT INTO memory_arcs (owner, session, ended_at, body) VALUES ($1, $2, $3, $4)"""
_HOLD = """
    INSERT INTO memory_held (owner, session, id, at, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING"""
_COPY_ARCS = """
    INSERT INTO memory_arcs (owner, session, ended_at, body)
    SELECT $1, session, ended_at, body FROM memory_arcs WHERE owner = $2 ORDER BY n"""
_COPY_PROFILE = """
    INSERT INTO memory_profiles (owner, revision, body)
    SELECT $1, revision, body FROM memory_profiles WHERE owner = $2"""
_DROP_ARC = "DELETE FROM memory_arcs WHERE owner = $1 AND session = $2"
_DROP_HELD = "DELETE FROM memory_held WHERE owner = $1 AND session = $2"
_DROP_HELD_ONE = "DELETE FROM memory_held WHERE owner = $1 AND id = $2"
_DROP_OWNER = (
    "DELETE FROM memory_profiles WHERE owner = $1",
    "DELETE FROM memory_owners WHERE owner = $1",
    "DELETE FROM memory_writes WHERE owner = $1",
)
_DROP_ITEMS = ("DELETE FROM memory_arcs WHERE owner = $1", "DELETE FROM memory_held WHERE owner = $1")
_DROP_OLD = ("DELETE FROM memory_arcs WHERE ended_at < $1", "DELETE FROM memory_held WHERE at < $1")
_DROP_OLD_KEYS = "DELETE FROM memory_writes WHERE at < $1"


async def hold(db: Connection, owner: str) -> None:
    """Wait until no other transaction writes of the owner."""
    await lock(db, f"memory {owner}")


async def profile_of(db: Connection, owner: str) -> Profile:
    """The stored profile, or an empty one."""
    row = await db.fetchrow(_PROFILE, owner)
    return Profile() if row is None else decode_profile(row["body"])


async def put_profile(db: Connection, owner: str, profile: Profile) -> Profile:
    """Store a profile; as stored. Raises ProfileChanged."""
    await hold(db, owner)
    new = next_profile(await profile_of(db, owner), profile)
    await _set_profile(db, owner, new)
    return new


async def write(db: Connection, owner: str, writes: MemoryWrites) -> Written:
    """See `MemoryBook.write`. Raises ProfileChanged."""
    await hold(db, owner)
    if not changed(await db.execute(_NOTE, owner, memory_key(writes.key), writes.at)):
        return Written(repeated=True)
    stored = await profile_of(db, owner)
    if writes.profile is not None:
        stored = await put_profile(db, owner, writes.profile)
    session = memory_key(writes.session_id)
    if not stored.enabled:
        if writes.ends_session:
            await db.execute(_DROP_HELD, owner, session)
        return Written(disabled=True)
    rows = await writable_rows(db, owner)
    written = await _write_facts(db, owner, rows, writes)
    for one in writes.held:
        await db.execute(_HOLD, owner, session, one.candidate.id, writes.at, encode_held(one))
    if writes.arc is not None:
        ended = memory_key(writes.arc.session_id)
        await db.execute(_DROP_ARC, owner, ended)
        await db.execute(_PUT_ARC, owner, ended, writes.arc.ended_at, encode_arc(writes.arc))
    if writes.ends_session:
        await db.execute(_DROP_HELD, owner, session)
    return written


async def _write_facts(db: Connection, owner: str, rows: PostgresFactRows, writes: MemoryWrites) -> Written:
    stored_as: dict[str, str] = {}
    added = again = 0
    for fact in writes.facts:
        known = await _numbered(db, _SAME_TRIPLE, owner, rows.triple(fact))
        same = same_statement(fact, (one for _, one in known)) or await _by_id(db, owner, fact.id)
        if same is None:
            await rows.add(fact)
            added += 1
            continue
        stored_as[fact.id] = same.id
        await _mark(db, owner, rows, renewed(same, writes.at))
        again += 1
    for old_id, new_id in writes.supersedes:
        old, new = await _by_id(db, owner, old_id), stored_as.get(new_id, new_id)
        if old is not None and old.id != new:
            await _mark(db, owner, rows, replace(old, superseded_by=new))
    for fact_id in writes.dormant:
        if (known_fact := await _by_id(db, owner, fact_id)) is not None:
            await _mark(db, owner, rows, replace(known_fact, dormant_at=writes.at))
    return Written(facts=added, renewed=again)


async def forget(db: Connection, owner: str, ids: Sequence[str]) -> int:
    """Delete facts, with those that they have replaced, arcs, rules and candidates; how many there were."""
    await hold(db, owner)
    numbers: dict[int, None] = {}
    gone = 0
    for item in dict.fromkeys(ids):
        facts = await _numbered(db, _BY_ID, owner, memory_key(item))
        gone += len(facts)
        numbers.update(dict.fromkeys(number for number, _ in facts))
        if facts:
            numbers.update(dict.fromkeys(await _replaced(db, owner, item)))
        gone += changed(await db.execute(_DROP_ARC, owner, memory_key(item)))
        gone += changed(await db.execute(_DROP_HELD_ONE, owner, memory_key(item)))
    await delete(db, list(numbers))
    profile, rules = without_rules(await profile_of(db, owner), frozenset(ids))
    if rules:
        await _set_profile(db, owner, profile)
    return gone + rules


async def _replaced(db: Connection, owner: str, fact_id: str) -> list[int]:
    """The numbers of all facts that the fact has replaced, directly or not."""
    found: dict[int, None] = {}
    waiting = [fact_id]
    while waiting:
        for row in await db.fetch(_REPLACED_BY, owner, waiting.pop()):
            if row["n"] not in found:
                found[row["n"]] = None
                waiting.append(row["id"])
    return list(found)


async def forget_session(db: Connection, owner: str, session: str) -> int:
    """Delete the facts, the candidates and the arc of a session; how many."""
    await hold(db, owner)
    numbers = await _numbers(db, _OF_SESSION, owner, session)
    await delete(db, numbers)
    gone = len(numbers)
    for statement in (_DROP_ARC, _DROP_HELD):
        gone += changed(await db.execute(statement, owner, session))
    return gone


async def erase(db: Connection, owner: str) -> int:
    """Delete everything of the owner; how many items."""
    await hold(db, owner)
    numbers = await _numbers(db, _OF_OWNER, owner)
    await delete(db, numbers)
    profile = await profile_of(db, owner)
    gone = len(numbers) + len(profile.rules) + len(profile.archived_rules)
    for statement in _DROP_ITEMS:
        gone += changed(await db.execute(statement, owner))
    had_profile, *_ = [changed(await db.execute(statement, owner)) for statement in _DROP_OWNER]
    return gone + had_profile


async def prune(db: Connection, before: float) -> int:
    """Delete what is older than a Unix time, of all owners; how many."""
    old = await _numbers(db, _OLD, before)
    await delete(db, old)
    gone = len(old)
    for statement in _DROP_OLD:
        gone += changed(await db.execute(statement, before))
    await db.execute(_DROP_OLD_KEYS, before)
    return gone


async def copy(db: Connection, source: str, target: str) -> None:
    """Copy the facts, arcs and profile of the owner `source` to `target`, of whom nothing is kept."""
    await hold(db, source)
    if not await is_known(db, source) and not (await profile_of(db, source)).revision:
        return
    rows = await writable_rows(db, target)
    for _, fact in await _numbered(db, f"{FACT} WHERE owner = $1 ORDER BY n", source):
        await rows.add(fact)
    await db.execute(_COPY_ARCS, target, source)
    await db.execute(_COPY_PROFILE, target, source)


async def _set_profile(db: Connection, owner: str, profile: Profile) -> None:
    await db.execute(_PUT_PROFILE, owner, profile.revision, encode_profile(profile))


async def _by_id(db: Connection, owner: str, fact_id: str) -> Fact | None:
    found = await _numbered(db, _BY_ID, owner, fact_id)
    return found[0][1] if found else None


async def _mark(db: Connection, owner: str, rows: PostgresFactRows, fact: Fact) -> None:
    number = (await _numbered(db, _BY_ID, owner, fact.id))[0][0]
    await rows.mark(number, fact)


async def _numbers(db: Connection, sql: str, *values: Any) -> list[int]:
    return [row["n"] for row in await db.fetch(sql, *values)]


async def _numbered(db: Connection, sql: str, *values: Any) -> list[tuple[int, Fact]]:
    return [(row[0], decode_fact(*tuple(row)[1:])) for row in await db.fetch(sql, *values)]
