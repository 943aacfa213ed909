"""The terminal's two sides: lines typed ahead, and a gateway that answers in the same breath."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from adapters.channel import Acceptance, OutboundReply
from adapters.console.adapter import THREAD, ConsoleAdapter, ConsoleOptions
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import (
    LlmToken,
    ResponseComplete,
)
from pipeline.domain.messages import Inbound, InboundMessage
from pipeline.domain.timeline import EntryRole
from tests.adapters.fakes import MemoryInbox, MemoryTimeline

Turn = Callable[["Bot", Inbound], Awaitable[None]]


class Terminal:
    """Lines typed ahead, and everything that was written."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines
        self.text = ""
        self.broken = False

    def write(self, text: str) -> None:
        if self.broken:
            raise BrokenPipeError(32, "Broken pipe")
        self.text += text

    async def lines(self) -> AsyncIterator[str]:
        for line in self._lines:
            yield line


class Bot:
    """The gateway behind the console: accepts, then answers each message in the same breath."""

    def __init__(self, terminal: Terminal, turn: Turn, **options: Any) -> None:
        settings = ConsoleOptions(
            interactive=options.pop("interactive", False),
            text_chars=100,
            settle_s=options.pop("settle_s", 5.0),
        )
        self.timeline = options.pop("timeline", MemoryTimeline())
        self.lines = options.pop("lines", terminal.lines())
        self.adapter = ConsoleAdapter(
            settings, self.timeline, ManualClock(), lines=self.lines, write=terminal.write, **options
        )
        self.inbox = MemoryInbox()
        self._turn = turn

    async def chat(self) -> None:
        """Run the adapter to its own end."""
        async with asyncio.timeout(60):
            await self.adapter.run(self._accept)

    async def _accept(self, item: Inbound) -> Acceptance:
        acceptance = await self.inbox(item)
        if acceptance.status == "accepted":
            await self._turn(self, item)
        return acceptance

    async def stream(self, message_id: str, *pieces: str) -> None:
        offset = 0
        for piece in pieces:
            event = LlmToken(session_id="s", message_id=message_id, text=piece, offset=offset)
            await self.adapter.sender_for(THREAD).send_event(event)
            offset += len(piece)

    async def finish(self, message_id: str, text: str) -> None:
        event = ResponseComplete(session_id="s", message_id=message_id, content=text, entry_id=1)
        await self.adapter.sender_for(THREAD).send_event(event)
        await self.reply(message_id, text)

    async def reply(self, message_id: str, text: str, role: EntryRole = "assistant") -> None:
        await self.adapter.send(
            OutboundReply(
                key=f"{message_id}:{role}",
                thread=THREAD,
                message_id=message_id,
                entry_id=1,
                role=role,
                text=text,
                created_at=1.0,
            )
        )


async def echo(bot: Bot, item: Inbound) -> None:
    assert isinstance(item, InboundMessage)
    await bot.stream(item.message_id, "you said ", item.text)
    await bot.finish(item.message_id, f"you said {item.text}")
