"""The real adapter with the real discord.py against the fake platform, and the gateway's side in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from adapters.channel import Acceptance, Outgoing, Receipt
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.sdk import DiscordWebSocket, Route
from adapters.discord.settings import DiscordOptions
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound, InboundMessage
from tests.adapters.fakes import MemoryInbox, MemoryTimeline
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Place


class ObservedInbox(MemoryInbox):
    """An inbox that tells the timeline what it accepted. `failures` are raised first, one per offer;
    `gate`, when set, is waited for before every answer."""

    def __init__(self, timeline: MemoryTimeline) -> None:
        super().__init__()
        self._timeline = timeline
        self.failures: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.busy: dict[str, int] = {}
        self.most_busy: dict[str, int] = {}

    async def __call__(self, item: Inbound) -> Acceptance:
        chat = item.thread.chat
        self.busy[chat] = self.busy.get(chat, 0) + 1
        self.most_busy[chat] = max(self.busy[chat], self.most_busy.get(chat, 0))
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.failures:
                raise self.failures.pop(0)
            acceptance = await super().__call__(item)
            if acceptance.status == "accepted":
                self._timeline.seen[item.thread] = item.native_id
            return acceptance
        finally:
            self.busy[chat] -= 1

    def texts(self) -> list[str]:
        """The words of the messages that were accepted, in order."""
        return [item.text for item in self.items if isinstance(item, InboundMessage)]


@dataclass(slots=True, kw_only=True)
class Bot:
    """One adapter with what is around it."""

    fake: FakeDiscord
    adapter: DiscordAdapter
    inbox: ObservedInbox
    timeline: MemoryTimeline = field(default_factory=MemoryTimeline)

    async def post(self, place: Place, text: str, *, key: str = "m_1:0", **what: object) -> Receipt:
        """Render and post the first part."""
        part = self.adapter.render(outgoing(text, **what))[0]
        return await self.adapter.post(thread(place), part, key=key)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """The adapter connected; cancelled at the end."""
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.adapter.run(self.inbox))
            await self.fake.until(lambda: self.adapter.health().state == "up" or task.done())
            try:
                yield task
            finally:
                task.cancel()


def outgoing(text: str, **what: object) -> Outgoing:
    """An answer."""
    return Outgoing(text=text, **what)  # type: ignore[arg-type]  # a test's shorthand


def thread(place: Place, account: str = "main") -> ThreadKey:
    """The place's thread."""
    return ThreadKey(channel="discord", account=account, chat=place.chat)


def question(interaction_id: str, *options: str) -> ApprovalRequired:
    """A question with buttons."""
    return ApprovalRequired(
        session_id="ses_1",
        message_id="m_1",
        interaction_id=interaction_id,
        tool_name="shell",
        reasoning="it writes",
        options=options,
        timeout_s=60.0,
    )


def bot_for(
    fake: FakeDiscord, *, clock: Clock | None = None, token: str | None = None, **listed: tuple[str, ...]
) -> Bot:
    """An adapter that is not running yet."""
    timeline = MemoryTimeline()
    settings = DiscordOptions(
        token=lambda: fake.token if token is None else token,
        api_base=fake.api_base,
        gateway_url=fake.gateway_url,
        **listed,  # type: ignore[arg-type]  # people and rooms
    )
    adapter = DiscordAdapter(settings, timeline, clock or SystemClock())
    return Bot(fake=fake, adapter=adapter, inbox=ObservedInbox(timeline), timeline=timeline)


@contextlib.asynccontextmanager
async def platform() -> AsyncIterator[FakeDiscord]:
    """A fake Discord; discord.py's addresses are put back afterwards."""
    base, gateway = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    try:
        async with FakeDiscord() as fake:
            yield fake
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = base, gateway
