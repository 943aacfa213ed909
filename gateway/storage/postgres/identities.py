"""SQL on linked identities and link codes. One change of links at a time, in all processes."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.storage.identities import (
    GROUP_PREFIX,
    Identity,
    JoinRequest,
    JoinResult,
    Left,
    LinkCode,
    Member,
    TryLimits,
    added_up,
    counted_twice,
    judge_join,
)
from gateway.storage.postgres import memory_writing
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import lock, memory_key, plain
from gateway.storage.usage import Spent
from pipeline.domain.frozen import dataclass

_LOCK = "identities"
_IDENTITY = 'channel = $1 AND account = $2 AND "user" = $3'
_FORGET_CODES = "DELETE FROM link_codes WHERE expires_at <= $1"
_OPEN_CODES = f"SELECT count(*) FROM link_codes WHERE NOT ({_IDENTITY})"  # noqa: S608 - a constant
_ISSUE = """
    INSERT INTO link_codes (channel, account, "user", thread, code_hash, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (channel, account, "user") DO UPDATE SET thread = excluded.thread,
        code_hash = excluded.code_hash, expires_at = excluded.expires_at"""
_CANCEL = "DELETE FROM link_codes WHERE code_hash = $1"
_CANCEL_OWN = f"DELETE FROM link_codes WHERE {_IDENTITY}"  # noqa: S608 - a constant
_BY_CODE = """
    SELECT channel, account, "user", thread FROM link_codes WHERE code_hash = $1 AND expires_at > $2"""
_FORGET_TRIES = "DELETE FROM link_tries WHERE at <= $1"
_TRIES = "SELECT count(*) FILTER (WHERE identity = $1), count(*) FROM link_tries"
_TRY = "INSERT INTO link_tries (identity, at) VALUES ($1, $2)"
_ONE = f"SELECT person, own, came_from, changed_by FROM identities WHERE {_IDENTITY}"  # noqa: S608 - a constant
_PUT = """
    INSERT INTO identities (channel, account, "user", thread, person, own, came_from, changed_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (channel, account, "user") DO UPDATE SET thread = excluded.thread, person = excluded.person,
        own = excluded.own, came_from = excluded.came_from, changed_by = excluded.changed_by"""
_LEAVE = f"UPDATE identities SET person = own, came_from = person, changed_by = $4 WHERE {_IDENTITY}"  # noqa: S608 - a constant
_MEMBERS = """
    SELECT channel, account, "user", thread FROM identities WHERE person = $1
    ORDER BY channel, account, "user" """
_ALL = 'SELECT channel, account, "user", person FROM identities'
_COPY_STATES = """
    INSERT INTO states (owner, graph, revision, body)
    SELECT $1, graph, revision, body FROM states WHERE owner = $2"""
_USED = "SELECT tokens, cost FROM usage WHERE day = $1 AND scope = $2"
_DAYS = "SELECT DISTINCT day FROM usage WHERE scope IN ($1, $2) ORDER BY day"
_USE = """
    INSERT INTO usage (day, scope, tokens, cost) VALUES ($1, $2, $3, $4)
    ON CONFLICT (day, scope) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost"""
# Their sums are read and then set: no other process may add to them meanwhile.
_HOLD_USE = "SELECT 1 FROM usage WHERE scope = ANY($1::text[]) ORDER BY day, scope FOR UPDATE"


class PostgresIdentities:
    """The linked identities in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def issue(self, code: LinkCode, *, limit: int) -> bool:
        async def change(db: Connection) -> bool:
            await lock(db, _LOCK)
            await db.execute(_FORGET_CODES, code.issued_at)
            own = _values(code.identity)
            if await db.fetchval(_OPEN_CODES, *own) >= limit:
                return False
            await db.execute(_ISSUE, *own, code.thread, code.code_hash, code.expires_at)
            return True

        return await self._database.write(change)

    async def cancel(self, code_hash: str) -> None:
        async def change(db: Connection) -> None:
            await db.execute(_CANCEL, code_hash)

        await self._database.write(change)

    async def join(self, request: JoinRequest, limits: TryLimits) -> JoinResult:
        async def change(db: Connection) -> JoinResult:
            await lock(db, _LOCK)
            return await _join(db, request, limits)

        return await self._database.write(change)

    async def leave(self, identity: Identity, *, message_id: str, day: str) -> Left:
        async def change(db: Connection) -> Left:
            await lock(db, _LOCK)
            return await _leave(db, identity, message_id, day)

        return await self._database.write(change)

    async def linked(self) -> Mapping[Identity, str]:
        rows = await self._database.read(lambda db: db.fetch(_ALL))
        found = {_identity(*tuple(row)[:3]): str(row["person"]) for row in rows}
        return {identity: person for identity, person in found.items() if person != identity.key}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    person: str
    own: str
    came_from: str
    changed_by: str


async def _join(db: Connection, request: JoinRequest, limits: TryLimits) -> JoinResult:
    identity = request.identity
    row = await _row(db, identity)
    if row.changed_by == request.message_id:
        return await _joined(db, request, row.person, row.came_from, row.own)
    await db.execute(_FORGET_TRIES, request.at - limits.window_s)
    (own, everybody) = (await db.fetch(_TRIES, plain(identity.key)))[0]
    if own >= limits.identity or everybody >= limits.everybody:
        return JoinResult(status="limited")
    found = await db.fetchrow(_BY_CODE, request.code_hash, request.at)
    if found is None:
        await db.execute(_TRY, plain(identity.key), request.at)
        return JoinResult(status="wrong")
    owner = _member(*found)
    asked = await _row(db, owner.identity)
    status = judge_join(
        identity,
        owner.identity,
        person=row.person,
        owners=asked.person,
        is_linked=bool(await _others(db, row.person, identity)),
        members=len(await _others(db, asked.person, identity)),
        most=request.most,
    )
    if status != "joined":
        return JoinResult(status=status)
    return await _link(db, request, owner, asked, row)


async def _link(db: Connection, request: JoinRequest, owner: Member, asked: _Row, row: _Row) -> JoinResult:
    exists = asked.person.startswith(GROUP_PREFIX)
    person, source = (asked.person, "") if exists else (request.new_person, asked.person)
    if source:
        await db.execute(_PUT, *_values(owner.identity), owner.thread, person, source, "", "")
        await db.execute(_COPY_STATES, plain(person), plain(source))
        await memory_writing.copy(db, memory_key(source), memory_key(person))
    await _add_up(db, asked.person, row.person, person)
    values = (*_values(request.identity), request.thread, person, row.person, source, request.message_id)
    await db.execute(_PUT, *values)
    await db.execute(_CANCEL, request.code_hash)
    return await _joined(db, request, person, source, row.person)


async def _add_up(db: Connection, one: str, other: str, person: str) -> None:
    """Set the sums of `person`, who is both others from now on, for every day that is kept."""
    both = counted_twice(one, other)
    await db.execute(_HOLD_USE, [plain(scope) for scope in (one, other, both, person)])
    for row in await db.fetch(_DAYS, plain(one), plain(other)):
        day = row["day"]
        used = [await _used(db, day, scope) for scope in (one, other, both)]
        await _use(db, day, person, added_up(*used))


async def _joined(db: Connection, request: JoinRequest, person: str, source: str, before: str) -> JoinResult:
    others = await _others(db, person, request.identity)
    return JoinResult(status="joined", person=person, source=source, before=before, others=others)


async def _leave(db: Connection, identity: Identity, message_id: str, day: str) -> Left:
    await db.execute(_CANCEL_OWN, *_values(identity))
    row = await _row(db, identity)
    if row.changed_by == message_id:
        return Left(own=row.person, others=await _others(db, row.came_from, identity))
    others = await _others(db, row.person, identity)
    if not others:
        return Left(own=row.person, others=())
    both = counted_twice(row.own, row.person)
    await db.execute(_HOLD_USE, [plain(scope) for scope in (row.own, row.person, both)])
    await _use(db, day, row.own, await _used(db, day, row.person))
    for found in await db.fetch(_DAYS, plain(row.own), plain(row.own)):
        # The person's sums include those from before the link.
        await _use(db, found["day"], both, await _used(db, found["day"], row.own))
    await db.execute(_LEAVE, *_values(identity), message_id)
    return Left(own=row.own, others=others)


async def _row(db: Connection, identity: Identity) -> _Row:
    """What is stored of the identity; for one that was never linked, that it is a person alone."""
    found = await db.fetchrow(_ONE, *_values(identity))
    if found is None:
        return _Row(person=identity.key, own=identity.key, came_from="", changed_by="")
    return _Row(**dict(found))


async def _others(db: Connection, person: str, but: Identity) -> tuple[Member, ...]:
    members = [_member(*row) for row in await db.fetch(_MEMBERS, plain(person))]
    return tuple(member for member in members if member.identity != but)


async def _used(db: Connection, day: str, scope: str) -> Spent:
    row = await db.fetchrow(_USED, day, plain(scope))
    return Spent() if row is None else Spent(tokens=row["tokens"], cost=row["cost"])


async def _use(db: Connection, day: str, scope: str, spent: Spent) -> None:
    """Set the day's sum of `scope`; a day without use needs no row."""
    if spent != Spent():
        await db.execute(_USE, day, plain(scope), spent.tokens, spent.cost)


def _values(identity: Identity) -> tuple[str, str, str]:
    return identity.channel, identity.account, plain(identity.user)


def _identity(channel: str, account: str, user: str) -> Identity:
    return Identity(channel=channel, account=account, user=user)


def _member(channel: str, account: str, user: str, thread: str) -> Member:
    return Member(identity=_identity(channel, account, user), thread=thread)
