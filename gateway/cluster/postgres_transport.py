"""Signals over Postgres: NOTIFY on a separate connection, never inside a transaction that stores something.

A payload has at most 8,000 bytes, so a longer text is sent in parts. A channel's name has at most 63 bytes,
so it is a digest of the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from typing import Any, Final

import asyncpg

from gateway.cluster.transport import TransportError, unreachable
from pipeline.domain.bounded_dict import BoundedDict

_FAILURES: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)
_NOTIFY: Final = """
    SELECT pg_notify(topic, text) FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS sent(topic, text, n)
    ORDER BY n"""
_WHOLE_BYTES: Final = 7_000
_PART_BYTES: Final = 3_500
_MOST_JOINED: Final = 256
"""Texts of which some parts have arrived; the oldest are dropped."""


class PostgresTransport:
    """The transport over one Postgres database."""

    name = "postgres"

    def __init__(self, url: str) -> None:
        self._url = url

    async def connect(self) -> PostgresConnection:
        """See `Transport.connect`."""
        try:
            connection = await asyncpg.connect(self._url)
        except _FAILURES as error:
            raise unreachable(error) from error
        return PostgresConnection(connection)


class PostgresConnection:
    """One connection that listens and notifies."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self._connection = connection
        self._arrived = asyncio.Queue[str | None]()
        """Texts; None when the connection is lost."""
        self._numbers = count(1)
        self._joined = BoundedDict[tuple[int, str], list[str]](_MOST_JOINED)
        """The parts that have arrived, by the sender's connection and the text's number."""
        connection.add_termination_listener(self._lost)

    async def listen(self, topic: str) -> None:
        """See `TransportConnection.listen`."""
        try:
            await self._connection.add_listener(_channel(topic), self._notified)
        except _FAILURES as error:
            raise unreachable(error) from error

    async def send(self, messages: Sequence[tuple[str, str]]) -> None:
        """See `TransportConnection.send`."""
        parts = [(_channel(topic), part) for topic, text in messages for part in self._parts(text)]
        if not parts:
            return
        try:
            await self._connection.execute(
                _NOTIFY, [topic for topic, _ in parts], [part for _, part in parts]
            )
        except _FAILURES as error:
            raise unreachable(error) from error

    async def receive(self) -> str:
        """See `TransportConnection.receive`."""
        text = await self._arrived.get()
        if text is None:
            raise TransportError("has closed the connection")
        return text

    async def close(self) -> None:
        """See `TransportConnection.close`."""
        self._connection.remove_termination_listener(self._lost)
        self._connection.terminate()

    def _parts(self, text: str) -> list[str]:
        """`NUMBER INDEX COUNT PART` for each part. The number makes equal texts differ, of which Postgres
        delivers only one in a transaction."""
        number, data = next(self._numbers), text.encode()
        if len(data) <= _WHOLE_BYTES:
            return [f"{number} 0 1 {text}"]
        pieces = [data[at : at + _PART_BYTES] for at in range(0, len(data), _PART_BYTES)]
        # A part may end inside a character; Latin-1 writes any byte, the upper ones as two.
        return [f"{number} {at} {len(pieces)} {piece.decode('latin-1')}" for at, piece in enumerate(pieces)]

    def _notified(self, _connection: Any, pid: int, _channel: str, payload: object) -> None:
        number, index, total, part = str(payload).split(" ", 3)
        if total == "1":
            self._arrived.put_nowait(part)
            return
        parts = self._joined.get_or_add((pid, number), list)
        if int(index) != len(parts):
            # A part was lost, so the text is.
            del self._joined[pid, number]
            return
        parts.append(part)
        if len(parts) == int(total):
            del self._joined[pid, number]
            self._arrived.put_nowait("".join(parts).encode("latin-1").decode())

    def _lost(self, _connection: object) -> None:
        self._arrived.put_nowait(None)


def _channel(topic: str) -> str:
    return f"parlour_{blake2b(topic.encode(), digest_size=16).hexdigest()}"
