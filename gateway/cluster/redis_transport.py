"""Signals over Redis or Valkey: publish and subscribe, which keeps nothing on the server's disk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from gateway.cluster.transport import unreachable

_FAILURES: Final = (RedisError, OSError)
_PREFIX: Final = "parlour:"


class RedisTransport:
    """The transport over one Redis server."""

    name = "redis"

    def __init__(self, url: str) -> None:
        self._url = url

    async def connect(self) -> RedisConnection:
        """See `Transport.connect`."""
        # Neither repeats a command by itself, which would send a signal twice; the caller's deadlines count.
        client = Redis.from_url(
            self._url, decode_responses=True, socket_timeout=None, retry=Retry(NoBackoff(), 0)
        )
        try:
            await client.ping()
        except _FAILURES as error:
            await client.aclose()
            raise unreachable(error) from error
        return RedisConnection(client)


class RedisConnection:
    """Two connections: one subscribes, one publishes."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._subscriptions = client.pubsub()
        self._subscribed: dict[str, asyncio.Future[None]] = {}
        """Resolved when the server confirms the subscription, by channel."""
        self._reading: asyncio.Lock = asyncio.Lock()

    async def listen(self, topic: str) -> None:
        """See `TransportConnection.listen`."""
        channel = _PREFIX + topic
        confirmed = self._subscribed[channel] = asyncio.get_running_loop().create_future()
        try:
            await self._subscriptions.subscribe(channel)
            if self._reading.locked():
                await confirmed
            else:
                # Nothing receives yet: read the confirmation here.
                while not confirmed.done():
                    self._note(await self._next())
        except _FAILURES as error:
            raise unreachable(error) from error

    async def send(self, messages: Sequence[tuple[str, str]]) -> None:
        """See `TransportConnection.send`."""
        if not messages:
            return
        try:
            async with self._client.pipeline(transaction=False) as pipe:
                for topic, text in messages:
                    pipe.publish(_PREFIX + topic, text)
                await pipe.execute()
        except _FAILURES as error:
            raise unreachable(error) from error

    async def receive(self) -> str:
        """See `TransportConnection.receive`."""
        async with self._reading:
            try:
                while (text := self._note(await self._next())) is None:
                    pass
            except _FAILURES as error:
                raise unreachable(error) from error
        return text

    async def close(self) -> None:
        """See `TransportConnection.close`."""
        for closing in (self._subscriptions.aclose(), self._client.aclose()):  # type: ignore[no-untyped-call]  # redis-py's stubs
            with suppress(*_FAILURES):
                await closing

    async def _next(self) -> dict[str, Any] | None:
        message: dict[str, Any] | None = await self._subscriptions.get_message(timeout=None)
        return message

    def _note(self, message: dict[str, Any] | None) -> str | None:
        """The text of a message; None for anything else, after noting a confirmed subscription."""
        if message is None:
            return None
        if message["type"] == "subscribe":
            confirmed = self._subscribed.pop(message["channel"], None)
            if confirmed is not None and not confirmed.done():
                confirmed.set_result(None)
            return None
        return str(message["data"]) if message["type"] == "message" else None
