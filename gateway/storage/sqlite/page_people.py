"""SQL on the invited people of the page, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import encode_body, storable_text
from gateway.storage.page_people import (
    Device,
    Invitation,
    InviteStatus,
    PagePerson,
    Redemption,
    SignedIn,
)
from gateway.storage.sqlite import jobs
from gateway.storage.sqlite.worker_thread import DatabaseThread

_PERSON = "SELECT id, name, invited_at, joined_at FROM page_people "
_TAKEN = "SELECT 1 FROM page_people WHERE name_key = ? AND id <> ?"
_ADD = "INSERT INTO page_people (id, name, name_key, invited_at, joined_at) VALUES (?, ?, ?, ?, ?)"
_FORGET = "DELETE FROM page_invitations WHERE expires_at <= ?"
_OPEN = "SELECT count(*) FROM page_invitations WHERE person = ? AND used_by = ''"
_INVITE = "INSERT INTO page_invitations (code_hash, person, made_at, expires_at) VALUES (?, ?, ?, ?)"
_BY_CODE = "SELECT person, used_by FROM page_invitations WHERE code_hash = ? AND expires_at > ?"
_USE = "UPDATE page_invitations SET used_by = ? WHERE code_hash = ?"
_OPEN_INVITATIONS = """
    SELECT person, code_hash, made_at, expires_at FROM page_invitations
    WHERE used_by = '' AND expires_at > ? ORDER BY made_at, expires_at, code_hash"""
_JOINED = "UPDATE page_people SET joined_at = ? WHERE id = ? AND joined_at = 0"
_DEVICE = "SELECT id, person, name, signed_in_at, seen_at FROM page_devices "
_DEVICES = _DEVICE + "WHERE ?1 IS NULL OR person = ?1 ORDER BY seen_at DESC, signed_in_at DESC, id"
_ADD_DEVICE = """
    INSERT INTO page_devices (id, person, token_hash, name, signed_in_at, seen_at)
    VALUES (?, ?, ?, ?, ?, ?)"""
_SEEN = "UPDATE page_devices SET seen_at = ? WHERE id = ?"
_SIGN_OUT = "DELETE FROM page_devices WHERE person = ? AND id = ?"
_RENAME = "UPDATE page_people SET name = ?, name_key = ? WHERE id = ?"
_REMOVE = (
    "DELETE FROM page_devices WHERE person = ?",
    "DELETE FROM page_invitations WHERE person = ?",
    "DELETE FROM page_people WHERE id = ?",
)
_CANCEL = """
    UPDATE inbox SET cancelled = 1 WHERE outcome IS NULL AND thread IN (
        SELECT id FROM threads WHERE key >= :prefix AND key < :prefix || char(0x10FFFF))"""


class SqlitePagePeople:
    """The invited people in one SQLite file: a part of `SqliteStore`, or opened while a gateway runs."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def add(self, person: PagePerson, invitation: Invitation) -> InviteStatus:
        return await self._writer().submit(lambda db: _add(db, person, invitation))

    async def invite(self, invitation: Invitation, *, limit: int) -> InviteStatus:
        return await self._writer().submit(lambda db: _invite(db, invitation, limit))

    async def redeem(self, redemption: Redemption) -> SignedIn | None:
        return await self._writer().submit(lambda db: _redeem(db, redemption))

    async def sign_in(self, token_hash: str) -> SignedIn | None:
        return await self._reader().submit(lambda db: _sign_in(db, token_hash))

    async def note_seen(self, device: str, *, at: float) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(_SEEN, (at, device))

        await self._writer().submit(work)

    async def person(self, person_id: str) -> PagePerson | None:
        return await self._reader().submit(lambda db: _person(db, person_id))

    async def people(self) -> tuple[PagePerson, ...]:
        def work(db: sqlite3.Connection) -> tuple[PagePerson, ...]:
            return tuple(_as_person(row) for row in db.execute(_PERSON + "ORDER BY invited_at, name_key"))

        return await self._reader().submit(work)

    async def open_invitations(self, *, now: float) -> tuple[Invitation, ...]:
        def work(db: sqlite3.Connection) -> tuple[Invitation, ...]:
            return tuple(
                Invitation(person=person, code_hash=code, made_at=made, expires_at=expires)
                for person, code, made, expires in db.execute(_OPEN_INVITATIONS, (now,))
            )

        return await self._reader().submit(work)

    async def devices(self, person_id: str | None = None) -> tuple[Device, ...]:
        def work(db: sqlite3.Connection) -> tuple[Device, ...]:
            rows = db.execute(_DEVICES, (person_id,))
            return tuple(_as_device(row) for row in rows)

        return await self._reader().submit(work)

    async def sign_out(self, person_id: str, device: str) -> bool:
        return await self._writer().submit(lambda db: db.execute(_SIGN_OUT, (person_id, device)).rowcount > 0)

    async def rename(self, person_id: str, name: str) -> InviteStatus:
        return await self._writer().submit(lambda db: _rename(db, person_id, storable_text(name)))

    async def remove(self, person_id: str, *, threads: str, job: NewJob) -> bool:
        body = encode_body(job.body)
        return await self._writer().submit(lambda db: _remove(db, person_id, threads, job, body))


def _add(db: sqlite3.Connection, person: PagePerson, invitation: Invitation) -> InviteStatus:
    db.execute(_FORGET, (invitation.made_at,))
    name = storable_text(person.name)
    if db.execute(_TAKEN, (name.casefold(), person.id)).fetchone():
        return "taken"
    db.execute(_ADD, (person.id, name, name.casefold(), person.invited_at, person.joined_at))
    db.execute(_INVITE, _invitation(invitation))
    return "made"


def _invite(db: sqlite3.Connection, invitation: Invitation, limit: int) -> InviteStatus:
    db.execute(_FORGET, (invitation.made_at,))
    if _person(db, invitation.person) is None:
        return "unknown"
    if db.execute(_OPEN, (invitation.person,)).fetchone()[0] >= limit:
        return "full"
    db.execute(_INVITE, _invitation(invitation))
    return "made"


def _redeem(db: sqlite3.Connection, asked: Redemption) -> SignedIn | None:
    found = db.execute(_BY_CODE, (asked.code_hash, asked.at)).fetchone()
    if found is None:
        return None
    person, used_by = found
    known = _sign_in(db, asked.token_hash)
    if used_by or known is not None:
        # A browser that lost the answer asks again with the token that it has kept.
        return known if used_by == asked.token_hash else None
    name = storable_text(asked.name)
    db.execute(_USE, (asked.token_hash, asked.code_hash))
    db.execute(_ADD_DEVICE, (asked.device, person, asked.token_hash, name, asked.at, asked.at))
    db.execute(_JOINED, (asked.at, person))
    return _sign_in(db, asked.token_hash)


def _sign_in(db: sqlite3.Connection, token_hash: str) -> SignedIn | None:
    row = db.execute(_DEVICE + "WHERE token_hash = ?", (token_hash,)).fetchone()
    if row is None:
        return None
    device = _as_device(row)
    person = _person(db, device.person)
    return None if person is None else SignedIn(person=person, device=device)


def _person(db: sqlite3.Connection, person_id: str) -> PagePerson | None:
    row = db.execute(_PERSON + "WHERE id = ?", (person_id,)).fetchone()
    return None if row is None else _as_person(row)


def _rename(db: sqlite3.Connection, person_id: str, name: str) -> InviteStatus:
    if db.execute(_TAKEN, (name.casefold(), person_id)).fetchone():
        return "taken"
    changed = db.execute(_RENAME, (name, name.casefold(), person_id)).rowcount
    return "made" if changed else "unknown"


def _remove(db: sqlite3.Connection, person_id: str, threads: str, job: NewJob, body: str) -> bool:
    if _person(db, person_id) is None:
        return False
    for statement in _REMOVE:
        db.execute(statement, (person_id,))
    db.execute(_CANCEL, {"prefix": threads})
    jobs.add(db, job, body)
    return True


def _invitation(one: Invitation) -> tuple[str, str, float, float]:
    return one.code_hash, one.person, one.made_at, one.expires_at


def _as_person(row: tuple[Any, ...]) -> PagePerson:
    person_id, name, invited_at, joined_at = row
    return PagePerson(id=person_id, name=name, invited_at=invited_at, joined_at=joined_at)


def _as_device(row: tuple[Any, ...]) -> Device:
    device, person, name, signed_in_at, seen_at = row
    return Device(id=device, person=person, name=name, signed_in_at=signed_in_at, seen_at=seen_at)
