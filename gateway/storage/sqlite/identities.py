"""SQL on linked identities and link codes, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

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
from gateway.storage.sqlite import memory_writing
from gateway.storage.sqlite.worker_thread import DatabaseThread
from gateway.storage.usage import Spent
from pipeline.domain.frozen import dataclass

_IDENTITY = "channel = ? AND account = ? AND user = ?"
_FORGET_CODES = "DELETE FROM link_codes WHERE expires_at <= ?"
_OPEN_CODES = f"SELECT count(*) FROM link_codes WHERE NOT ({_IDENTITY})"  # noqa: S608 - a constant
_ISSUE = """
    INSERT OR REPLACE INTO link_codes (channel, account, user, thread, code_hash, expires_at)
    VALUES (?, ?, ?, ?, ?, ?)"""
_CANCEL = "DELETE FROM link_codes WHERE code_hash = ?"
_CANCEL_OWN = f"DELETE FROM link_codes WHERE {_IDENTITY}"  # noqa: S608 - a constant
_BY_CODE = "SELECT channel, account, user, thread FROM link_codes WHERE code_hash = ? AND expires_at > ?"
_FORGET_TRIES = "DELETE FROM link_tries WHERE at <= ?"
_TRIES = "SELECT count(*) FILTER (WHERE identity = ?), count(*) FROM link_tries"
_TRY = "INSERT INTO link_tries (identity, at) VALUES (?, ?)"
_ONE = f"SELECT person, own, came_from, changed_by FROM identities WHERE {_IDENTITY}"  # noqa: S608 - a constant
_PUT = """
    INSERT OR REPLACE INTO identities (channel, account, user, thread, person, own, came_from, changed_by)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_LEAVE = f"""
    UPDATE identities SET person = own, came_from = person, changed_by = ?
    WHERE {_IDENTITY}"""  # noqa: S608 - a constant
_MEMBERS = """
    SELECT channel, account, user, thread FROM identities WHERE person = ? ORDER BY channel, account, user"""
_ALL = "SELECT channel, account, user, person FROM identities"
_COPY_STATES = """
    INSERT INTO states (owner, graph, revision, body)
    SELECT ?, graph, revision, body FROM states WHERE owner = ?"""
_USED = "SELECT tokens, cost FROM usage WHERE day = ? AND scope = ?"
_DAYS = "SELECT DISTINCT day FROM usage WHERE scope IN (?, ?)"
_USE = "INSERT OR REPLACE INTO usage (day, scope, tokens, cost) VALUES (?, ?, ?, ?)"


class SqliteIdentities:
    """The linked identities in one SQLite file: a part of `SqliteStore`."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def issue(self, code: LinkCode, *, limit: int) -> bool:
        return await self._writer().submit(lambda db: _issue(db, code, limit))

    async def cancel(self, code_hash: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(_CANCEL, (code_hash,))

        await self._writer().submit(work)

    async def join(self, request: JoinRequest, limits: TryLimits) -> JoinResult:
        return await self._writer().submit(lambda db: _join(db, request, limits))

    async def leave(self, identity: Identity, *, message_id: str, day: str) -> Left:
        return await self._writer().submit(lambda db: _leave(db, identity, message_id, day))

    async def linked(self) -> Mapping[Identity, str]:
        def work(db: sqlite3.Connection) -> dict[Identity, str]:
            found = {_identity(*row[:3]): str(row[3]) for row in db.execute(_ALL)}
            return {identity: person for identity, person in found.items() if person != identity.key}

        return await self._reader().submit(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    person: str
    own: str
    came_from: str
    changed_by: str


def _issue(db: sqlite3.Connection, code: LinkCode, limit: int) -> bool:
    db.execute(_FORGET_CODES, (code.issued_at,))
    own = _values(code.identity)
    if db.execute(_OPEN_CODES, own).fetchone()[0] >= limit:
        return False
    db.execute(_ISSUE, (*own, code.thread, code.code_hash, code.expires_at))
    return True


def _join(db: sqlite3.Connection, request: JoinRequest, limits: TryLimits) -> JoinResult:
    identity = request.identity
    row = _row(db, identity)
    if row.changed_by == request.message_id:
        return _joined(db, request, row.person, row.came_from, row.own)
    db.execute(_FORGET_TRIES, (request.at - limits.window_s,))
    own, everybody = db.execute(_TRIES, (identity.key,)).fetchone()
    if own >= limits.identity or everybody >= limits.everybody:
        return JoinResult(status="limited")
    found = db.execute(_BY_CODE, (request.code_hash, request.at)).fetchone()
    if found is None:
        db.execute(_TRY, (identity.key, request.at))
        return JoinResult(status="wrong")
    owner = _member(*found)
    asked = _row(db, owner.identity)
    status = judge_join(
        identity,
        owner.identity,
        person=row.person,
        owners=asked.person,
        is_linked=bool(_others(db, row.person, identity)),
        members=len(_others(db, asked.person, identity)),
        most=request.most,
    )
    if status != "joined":
        return JoinResult(status=status)
    exists = asked.person.startswith(GROUP_PREFIX)
    person, source = (asked.person, "") if exists else (request.new_person, asked.person)
    if source:
        values = (*_values(owner.identity), owner.thread, person, source, "", "")
        db.execute(_PUT, values)
        db.execute(_COPY_STATES, (person, source))
        memory_writing.copy(db, source, person)
    _add_up(db, asked.person, row.person, person)
    db.execute(_PUT, (*_values(identity), request.thread, person, row.person, source, request.message_id))
    db.execute(_CANCEL, (request.code_hash,))
    return _joined(db, request, person, source, row.person)


def _add_up(db: sqlite3.Connection, one: str, other: str, person: str) -> None:
    """Set the sums of `person`, who is both others from now on, for every day that is kept."""
    both = counted_twice(one, other)
    for (day,) in db.execute(_DAYS, (one, other)).fetchall():
        _use(db, day, person, added_up(_used(db, day, one), _used(db, day, other), _used(db, day, both)))


def _joined(
    db: sqlite3.Connection, request: JoinRequest, person: str, source: str, before: str
) -> JoinResult:
    others = _others(db, person, request.identity)
    return JoinResult(status="joined", person=person, source=source, before=before, others=others)


def _leave(db: sqlite3.Connection, identity: Identity, message_id: str, day: str) -> Left:
    db.execute(_CANCEL_OWN, _values(identity))
    row = _row(db, identity)
    if row.changed_by == message_id:
        return Left(own=row.person, others=_others(db, row.came_from, identity))
    others = _others(db, row.person, identity)
    if not others:
        return Left(own=row.person, others=())
    used = _used(db, day, row.person)
    _use(db, day, row.own, used)
    for (one,) in db.execute(_DAYS, (row.own, row.own)).fetchall():
        # The person's sums include those from before the link.
        _use(db, one, counted_twice(row.own, row.person), _used(db, one, row.own))
    db.execute(_LEAVE, (message_id, *_values(identity)))
    return Left(own=row.own, others=others)


def _row(db: sqlite3.Connection, identity: Identity) -> _Row:
    """What is stored of the identity; for one that was never linked, that it is a person alone."""
    found = db.execute(_ONE, _values(identity)).fetchone()
    if found is None:
        return _Row(person=identity.key, own=identity.key, came_from="", changed_by="")
    person, own, came_from, changed_by = found
    return _Row(person=person, own=own, came_from=came_from, changed_by=changed_by)


def _others(db: sqlite3.Connection, person: str, but: Identity) -> tuple[Member, ...]:
    members = (_member(*row) for row in db.execute(_MEMBERS, (person,)))
    return tuple(member for member in members if member.identity != but)


def _used(db: sqlite3.Connection, day: str, scope: str) -> Spent:
    row = db.execute(_USED, (day, scope)).fetchone()
    return Spent() if row is None else Spent(tokens=row[0], cost=row[1])


def _use(db: sqlite3.Connection, day: str, scope: str, spent: Spent) -> None:
    """Set the day's sum of `scope`; a day without use needs no row."""
    if spent != Spent():
        db.execute(_USE, (day, scope, spent.tokens, spent.cost))


def _values(identity: Identity) -> tuple[str, str, str]:
    return identity.channel, identity.account, identity.user


def _identity(channel: str, account: str, user: str) -> Identity:
    return Identity(channel=channel, account=account, user=user)


def _member(channel: str, account: str, user: str, thread: str) -> Member:
    return Member(identity=_identity(channel, account, user), thread=thread)
