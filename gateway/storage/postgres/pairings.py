"""SQL on pairing requests and pairings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.storage.pairings import PairedChat, Pairing, PairingRequest
from gateway.storage.postgres.database import Connection, Database
from gateway.storage.postgres.statements import changed, lock, plain

_FORGET = "DELETE FROM pairing_requests WHERE asked_at <= $1"
_ASK = """
    INSERT INTO pairing_requests (channel, account, chat, "user", name, code_hash, asked_at, expires_at)
    SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::float8, $8::float8
    WHERE (SELECT count(*) FROM pairing_requests WHERE channel = $1 AND account = $2 AND expires_at > $7) < $9
    AND NOT EXISTS (SELECT 1 FROM pairings WHERE channel = $1 AND account = $2 AND chat = $3 AND "user" = $4)
    ON CONFLICT DO NOTHING"""
_REQUESTS = """
    SELECT channel, account, chat, "user", name, code_hash, asked_at, expires_at FROM pairing_requests
    WHERE expires_at > $1 ORDER BY asked_at, channel, account, chat, "user" """
# Of two processes that are sent the same code, one gets the row.
_USE = """
    DELETE FROM pairing_requests WHERE code_hash = $1 AND expires_at > $2
    RETURNING channel, account, chat, "user", name, code_hash, asked_at, expires_at"""
_PAIR = """
    INSERT INTO pairings (channel, account, chat, "user", name, paired_at) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (channel, account, chat, "user")
        DO UPDATE SET name = excluded.name, paired_at = excluded.paired_at"""
_IS_PAIRED = 'SELECT 1 FROM pairings WHERE channel = $1 AND account = $2 AND chat = $3 AND "user" = $4'
_PAIRINGS = """
    SELECT channel, account, chat, "user", name, paired_at FROM pairings
    ORDER BY paired_at, channel, account, chat, "user" """
_REMOVE = 'DELETE FROM pairings WHERE channel = $1 AND "user" = $2'


class PostgresPairings:
    """The pairing book in a Postgres database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, request: PairingRequest, *, limit: int, again_after_s: float) -> bool:
        async def change(db: Connection) -> bool:
            await lock(db, "pairing_requests")
            await db.execute(_FORGET, request.asked_at - again_after_s)
            values = (
                *_values(request.place),
                plain(request.name),
                request.code_hash,
                request.asked_at,
                request.expires_at,
                limit,
            )
            return changed(await db.execute(_ASK, *values)) == 1

        return await self._database.write(change)

    async def requests(self, *, now: float) -> tuple[PairingRequest, ...]:
        rows = await self._database.read(lambda db: db.fetch(_REQUESTS, now))
        return tuple(_request(list(row)) for row in rows)

    async def pair(self, code_hash: str, *, now: float) -> Pairing | None:
        async def change(db: Connection) -> Pairing | None:
            # A request that comes meanwhile finds the pairing.
            await lock(db, "pairing_requests")
            row = await db.fetchrow(_USE, code_hash, now)
            if row is None:
                return None
            asked = _request(list(row))
            await db.execute(_PAIR, *_values(asked.place), asked.name, now)
            return Pairing(place=asked.place, name=asked.name, paired_at=now)

        return await self._database.write(change)

    async def is_paired(self, place: PairedChat) -> bool:
        row = await self._database.read(lambda db: db.fetchrow(_IS_PAIRED, *_values(place)))
        return row is not None

    async def pairings(self) -> tuple[Pairing, ...]:
        rows = await self._database.read(lambda db: db.fetch(_PAIRINGS))
        return tuple(_pairing(list(row)) for row in rows)

    async def remove(self, channel: str, user: str) -> int:
        async def change(db: Connection) -> int:
            return changed(await db.execute(_REMOVE, channel, plain(user)))

        return await self._database.write(change)


def _values(place: PairedChat) -> tuple[str, str, str, str]:
    return place.channel, place.account, plain(place.chat), plain(place.user)


def _request(row: Sequence[Any]) -> PairingRequest:
    *place, name, code_hash, asked_at, expires_at = row
    return PairingRequest(
        place=_place(place), name=name, code_hash=code_hash, asked_at=asked_at, expires_at=expires_at
    )


def _pairing(row: Sequence[Any]) -> Pairing:
    *place, name, paired_at = row
    return Pairing(place=_place(place), name=name, paired_at=paired_at)


def _place(columns: Sequence[Any]) -> PairedChat:
    channel, account, chat, user = columns
    return PairedChat(channel=channel, account=account, chat=chat, user=user)
