"""A transport between buses of one test process, which a test can take away and bring back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.cluster.transport import TransportConnection, TransportError


class MemoryHub:
    """What a server of signals is, in memory; the `Transport` of every bus that is to be connected by it."""

    name = "redis"

    def __init__(self) -> None:
        self._connections: set[_MemoryConnection] = set()
        self._up = True

    async def connect(self) -> TransportConnection:
        if not self._up:
            raise TransportError("cannot be reached (test)")
        connection = _MemoryConnection(self)
        self._connections.add(connection)
        return connection

    def take_away(self) -> None:
        """Break every connection, and refuse new ones."""
        self._up = False
        for connection in tuple(self._connections):
            connection.broken.set()

    def bring_back(self) -> None:
        """Accept connections again."""
        self._up = True

    def deliver(self, messages: Sequence[tuple[str, str]]) -> None:
        """Give each text to those that listen to its topic."""
        for topic, text in messages:
            for connection in self._connections:
                if topic in connection.topics:
                    connection.texts.put_nowait(text)

    def forget(self, connection: _MemoryConnection) -> None:
        """End a connection."""
        self._connections.discard(connection)


class _MemoryConnection:
    def __init__(self, hub: MemoryHub) -> None:
        self._hub = hub
        self.topics: set[str] = set()
        self.texts: asyncio.Queue[str] = asyncio.Queue()
        self.broken = asyncio.Event()

    async def listen(self, topic: str) -> None:
        self._require_whole()
        self.topics.add(topic)

    async def send(self, messages: Sequence[tuple[str, str]]) -> None:
        self._require_whole()
        self._hub.deliver(messages)

    async def receive(self) -> str:
        async with asyncio.TaskGroup() as group:
            text = group.create_task(self.texts.get())
            broken = group.create_task(self.broken.wait())
            await asyncio.wait((text, broken), return_when=asyncio.FIRST_COMPLETED)
            text.cancel()
            broken.cancel()
        if text.cancelled():
            raise TransportError("the connection is lost (test)")
        return text.result()

    async def close(self) -> None:
        self._hub.forget(self)

    def _require_whole(self) -> None:
        if self.broken.is_set():
            raise TransportError("the connection is lost (test)")
