"""SQL on the invited people of the page."""

from __future__ import annotations

from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import encode_body
from gateway.storage.page_people import (
    Device,
    Invitation,
    InviteStatus,
    PagePerson,
    Redemption,
    SignedIn,
)
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, lock, plain
from gateway.storage.postgres.thread_rows import add_job

_LOCK = "page_people"
_PERSON = "SELECT id, name, invited_at, joined_at FROM page_people "
_TAKEN = "SELECT 1 FROM page_people WHERE name_key = $1 AND id <> $2"
_ADD = "INSERT INTO page_people (id, name, name_key, invited_at, joined_at) VALUES ($1, $2, $3, $4, $5)"
_FORGET = "DELETE FROM page_invitations WHERE expires_at <= $1"
_OPEN = "SELECT count(*) FROM page_invitations WHERE person = $1 AND used_by = ''"
_INVITE = "INSERT INTO page_invitations (code_hash, person, made_at, expires_at) VALUES ($1, $2, $3, $4)"
_BY_CODE = "SELECT person, used_by FROM page_invitations WHERE code_hash = $1 AND expires_at > $2"
_USE = "UPDATE page_invitations SET used_by = $1 WHERE code_hash = $2"
_OPEN_INVITATIONS = """
    SELECT person, code_hash, made_at, expires_at FROM page_invitations
    WHERE used_by = '' AND expires_at > $1 ORDER BY made_at, expires_at, code_hash"""
_JOINED = "UPDATE page_people SET joined_at = $1 WHERE id = $2 AND joined_at = 0"
_DEVICE = "SELECT id, person, name, signed_in_at, seen_at FROM page_devices "
_DEVICES = f"""{_DEVICE} WHERE $1::text IS NULL OR person = $1
    ORDER BY seen_at DESC, signed_in_at DESC, id"""
_ADD_DEVICE = """
    INSERT INTO page_devices (id, person, token_hash, name, signed_in_at, seen_at)
    VALUES ($1, $2, $3, $4, $5, $6)"""
_SEEN = "UPDATE page_devices SET seen_at = $1 WHERE id = $2"
_SIGN_OUT = "DELETE FROM page_devices WHERE person = $1 AND id = $2"
_RENAME = "UPDATE page_people SET name = $1, name_key = $2 WHERE id = $3"
_REMOVE = (
    "DELETE FROM page_devices WHERE person = $1",
    "DELETE FROM page_invitations WHERE person = $1",
    "DELETE FROM page_people WHERE id = $1",
)
# The rows of the threads first, as in every other write to a thread.
_HOLD = "SELECT id FROM threads WHERE starts_with(key, $1) ORDER BY id FOR UPDATE"
_CANCEL = "UPDATE inbox SET cancelled = true WHERE outcome IS NULL AND thread = ANY($1::bigint[])"


class PostgresPagePeople:
    """The invited people in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, person: PagePerson, invitation: Invitation) -> InviteStatus:
        return await self._database.write(lambda db: _add(db, person, invitation))

    async def invite(self, invitation: Invitation, *, limit: int) -> InviteStatus:
        return await self._database.write(lambda db: _invite(db, invitation, limit))

    async def redeem(self, redemption: Redemption) -> SignedIn | None:
        return await self._database.write(lambda db: _redeem(db, redemption))

    async def sign_in(self, token_hash: str) -> SignedIn | None:
        return await self._database.read(lambda db: _sign_in(db, token_hash))

    async def note_seen(self, device: str, *, at: float) -> None:
        async def change(db: Connection) -> None:
            await db.execute(_SEEN, at, device)

        await self._database.write(change)

    async def person(self, person_id: str) -> PagePerson | None:
        return await self._database.read(lambda db: _person(db, person_id))

    async def people(self) -> tuple[PagePerson, ...]:
        rows = await self._database.read(lambda db: db.fetch(f"{_PERSON} ORDER BY invited_at, name_key"))
        return tuple(PagePerson(**dict(row)) for row in rows)

    async def open_invitations(self, *, now: float) -> tuple[Invitation, ...]:
        rows = await self._database.read(lambda db: db.fetch(_OPEN_INVITATIONS, now))
        return tuple(Invitation(**dict(row)) for row in rows)

    async def devices(self, person_id: str | None = None) -> tuple[Device, ...]:
        rows = await self._database.read(lambda db: db.fetch(_DEVICES, person_id))
        return tuple(Device(**dict(row)) for row in rows)

    async def sign_out(self, person_id: str, device: str) -> bool:
        async def change(db: Connection) -> bool:
            return changed(await db.execute(_SIGN_OUT, person_id, device)) > 0

        return await self._database.write(change)

    async def rename(self, person_id: str, name: str) -> InviteStatus:
        return await self._database.write(lambda db: _rename(db, person_id, plain(name)))

    async def remove(self, person_id: str, *, threads: str, job: NewJob) -> bool:
        body = encode_body(job.body)
        return await self._database.write(lambda db: _remove(db, person_id, threads, job, body))


async def _add(db: Connection, person: PagePerson, invitation: Invitation) -> InviteStatus:
    await lock(db, _LOCK)
    await db.execute(_FORGET, invitation.made_at)
    name = plain(person.name)
    if await db.fetchrow(_TAKEN, name.casefold(), person.id):
        return "taken"
    await db.execute(_ADD, person.id, name, name.casefold(), person.invited_at, person.joined_at)
    await db.execute(_INVITE, *_invitation(invitation))
    return "made"


async def _invite(db: Connection, invitation: Invitation, limit: int) -> InviteStatus:
    await lock(db, _LOCK)
    await db.execute(_FORGET, invitation.made_at)
    if await _person(db, invitation.person) is None:
        return "unknown"
    if await db.fetchval(_OPEN, invitation.person) >= limit:
        return "full"
    await db.execute(_INVITE, *_invitation(invitation))
    return "made"


async def _redeem(db: Connection, asked: Redemption) -> SignedIn | None:
    await lock(db, _LOCK)
    found = await db.fetchrow(_BY_CODE, asked.code_hash, asked.at)
    if found is None:
        return None
    person, used_by = found["person"], found["used_by"]
    known = await _sign_in(db, asked.token_hash)
    if used_by or known is not None:
        # A browser that lost the answer asks again with the token that it has kept.
        return known if used_by == asked.token_hash else None
    await db.execute(_USE, asked.token_hash, asked.code_hash)
    device = (asked.device, person, asked.token_hash, plain(asked.name), asked.at, asked.at)
    await db.execute(_ADD_DEVICE, *device)
    await db.execute(_JOINED, asked.at, person)
    return await _sign_in(db, asked.token_hash)


async def _sign_in(db: Connection, token_hash: str) -> SignedIn | None:
    row = await db.fetchrow(f"{_DEVICE} WHERE token_hash = $1", token_hash)
    if row is None:
        return None
    person = await _person(db, row["person"])
    return None if person is None else SignedIn(person=person, device=Device(**dict(row)))


async def _person(db: Connection, person_id: str) -> PagePerson | None:
    row = await db.fetchrow(f"{_PERSON} WHERE id = $1", person_id)
    return None if row is None else PagePerson(**dict(row))


async def _rename(db: Connection, person_id: str, name: str) -> InviteStatus:
    await lock(db, _LOCK)
    if await db.fetchrow(_TAKEN, name.casefold(), person_id):
        return "taken"
    renamed = changed(await db.execute(_RENAME, name, name.casefold(), person_id))
    return "made" if renamed else "unknown"


async def _remove(db: Connection, person_id: str, threads: str, job: NewJob, body: str) -> bool:
    await lock(db, _LOCK)
    if await _person(db, person_id) is None:
        return False
    for statement in _REMOVE:
        await db.execute(statement, person_id)
    held = [row["id"] for row in await db.fetch(_HOLD, threads)]
    await db.execute(_CANCEL, held)
    await add_job(db, job, body)
    return True


def _invitation(one: Invitation) -> tuple[str, str, float, float]:
    return one.code_hash, one.person, one.made_at, one.expires_at
