"""SQL on pairing requests and pairings, and the part of the store that runs it in its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from gateway.storage.json_bodies import storable_text
from gateway.storage.pairings import PairedChat, Pairing, PairingRequest
from gateway.storage.sqlite.worker_thread import DatabaseThread, T, Work

_PLACE = "channel = ? AND account = ? AND chat = ? AND user = ?"
_FORGET = "DELETE FROM pairing_requests WHERE asked_at <= ?"
_ASK = """
    INSERT INTO pairing_requests (channel, account, chat, user, name, code_hash, asked_at, expires_at)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
    WHERE (SELECT count(*) FROM pairing_requests WHERE channel = ?1 AND account = ?2 AND expires_at > ?7) < ?9
    AND NOT EXISTS (SELECT 1 FROM pairings WHERE channel = ?1 AND account = ?2 AND chat = ?3 AND user = ?4)
    ON CONFLICT DO NOTHING"""
_SELECT_REQUESTS = """
    SELECT channel, account, chat, user, name, code_hash, asked_at, expires_at FROM pairing_requests """
_REQUESTS = _SELECT_REQUESTS + "WHERE expires_at > ? ORDER BY asked_at, channel, account, chat, user"
_BY_CODE = _SELECT_REQUESTS + "WHERE code_hash = ? AND expires_at > ?"
_DROP_REQUEST = f"DELETE FROM pairing_requests WHERE {_PLACE}"  # noqa: S608 - a constant of this module
_PAIR = """
    INSERT OR REPLACE INTO pairings (channel, account, chat, user, name, paired_at)
    VALUES (?, ?, ?, ?, ?, ?)"""
_IS_PAIRED = f"SELECT 1 FROM pairings WHERE {_PLACE}"  # noqa: S608 - a constant of this module
_PAIRINGS = """
    SELECT channel, account, chat, user, name, paired_at FROM pairings
    ORDER BY paired_at, channel, account, chat, user"""
_REMOVE = "DELETE FROM pairings WHERE channel = ? AND user = ?"


class SqlitePairings:
    """The pairing book in one SQLite file: a part of `SqliteStore`, or opened while a gateway runs."""

    def __init__(self, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]) -> None:
        # Fetched at each call, because a reopened store has new threads.
        self._writer = writer
        self._reader = reader

    async def ask(self, request: PairingRequest, *, limit: int, again_after_s: float) -> bool:
        return await self._write(lambda db: _ask(db, request, limit, again_after_s))

    async def requests(self, *, now: float) -> tuple[PairingRequest, ...]:
        return await self._reader().submit(
            lambda db: tuple(_request(row) for row in db.execute(_REQUESTS, (now,)))
        )

    async def pair(self, code_hash: str, *, now: float) -> Pairing | None:
        return await self._write(lambda db: _pair(db, code_hash, now))

    async def is_paired(self, place: PairedChat) -> bool:
        values = _values(place)
        return await self._reader().submit(lambda db: db.execute(_IS_PAIRED, values).fetchone() is not None)

    async def pairings(self) -> tuple[Pairing, ...]:
        return await self._reader().submit(lambda db: tuple(_pairing(row) for row in db.execute(_PAIRINGS)))

    async def remove(self, channel: str, user: str) -> int:
        return await self._write(lambda db: db.execute(_REMOVE, (channel, user)).rowcount)

    async def _write(self, work: Work[T]) -> T:
        return await self._writer().submit(work)


def _ask(db: sqlite3.Connection, request: PairingRequest, limit: int, again_after_s: float) -> bool:
    db.execute(_FORGET, (request.asked_at - again_after_s,))
    values = (
        *_values(request.place),
        storable_text(request.name),
        request.code_hash,
        request.asked_at,
        request.expires_at,
        limit,
    )
    return db.execute(_ASK, values).rowcount == 1


def _pair(db: sqlite3.Connection, code_hash: str, now: float) -> Pairing | None:
    row = db.execute(_BY_CODE, (code_hash, now)).fetchone()
    if row is None:
        return None
    asked = _request(row)
    db.execute(_DROP_REQUEST, _values(asked.place))
    db.execute(_PAIR, (*_values(asked.place), asked.name, now))
    return Pairing(place=asked.place, name=asked.name, paired_at=now)


def _values(place: PairedChat) -> tuple[str, str, str, str]:
    return place.channel, place.account, place.chat, place.user


def _request(row: tuple[Any, ...]) -> PairingRequest:
    *place, name, code_hash, asked_at, expires_at = row
    return PairingRequest(
        place=_place(place), name=name, code_hash=code_hash, asked_at=asked_at, expires_at=expires_at
    )


def _pairing(row: tuple[Any, ...]) -> Pairing:
    *place, name, paired_at = row
    return Pairing(place=_place(place), name=name, paired_at=paired_at)


def _place(columns: list[Any]) -> PairedChat:
    channel, account, chat, user = columns
    return PairedChat(channel=channel, account=account, chat=chat, user=user)
