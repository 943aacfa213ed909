"""Shared parts of the kill runs: the gateway's address, its kills and starts, and what clients see."""

from __future__ import annotations

import asyncio

from tests.support.gateway_process import GatewayProcess
from tests.support.web_client import Line, Seen, WebChat


class Stage:
    """The gateway's current address, for all clients."""

    def __init__(self) -> None:
        self.up = asyncio.Event()
        self.url = ""
        self.token = ""
        self.stopping = False

    async def raise_curtain(self, gateway: GatewayProcess) -> None:
        """Start the gateway and publish its address."""
        await gateway.start()
        self.url, self.token = gateway.url, gateway.token
        self.up.set()

    async def kill(self, gateway: GatewayProcess) -> None:
        """End the gateway as a power cut would; clients do not connect meanwhile."""
        self.up.clear()
        await gateway.kill()


async def final_lines(chat: str | None, gateway: GatewayProcess) -> list[Line]:
    """The lines that a new client of the chat is shown; none for a chat without an id."""
    if chat is None:
        return []
    async with WebChat(chat=chat) as fresh:
        await fresh.connect(gateway.url, gateway.token, after=0)
        return fresh.seen.lines


def is_answered(seen: Seen, client_id: str) -> bool:
    """Whether the message sent under `client_id` has its answer or its terminal event."""
    message_id = seen.accepted.get(client_id)
    if message_id is None:
        return False
    return bool(seen.lines_of(message_id, "assistant") or seen.terminals_of(message_id))
