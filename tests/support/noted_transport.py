"""A transport that reports its attempts to connect, so that a test waits for one and for no time."""

from __future__ import annotations

import asyncio

from gateway.cluster.transport import Transport, TransportConnection


class NotedTransport:
    """A transport, and an event for each attempt to connect."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.name = transport.name
        self.attempted = asyncio.Event()

    async def connect(self) -> TransportConnection:
        self.attempted.set()
        return await self._transport.connect()

    async def again(self) -> None:
        """Wait until the connection is lost and another one is tried."""
        self.attempted.clear()
        await self.attempted.wait()
