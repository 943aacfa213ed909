"""The contract cases of the posting channels: the reference fake, and each adapter with its real SDK against
its platform's fake. `CASES` lists every channel; a new one adds a line.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp.web import Application, AppRunner, RouteDef, SockSite

from adapters.channel import RateLimits
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.settings import DiscordOptions
from adapters.slack.adapter import SlackAdapter
from adapters.slack.settings import SlackOptions
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramOptions
from parlour.testing.channel_case import ContractCase
from parlour.testing.contract import Factory
from parlour.testing.posting_case import PostingCase, running
from pipeline.domain.clock import SystemClock
from pipeline.domain.events import ApprovalRequired
from tests.adapters.fakes import MemoryTimeline
from tests.contracts.client_rendered_cases import console, web
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Person
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from tests.support.platforms.telegram_state import BOT_ID
from tests.support.posting_channel import MemoryPosts
from tests.support.posting_platform import MemoryPlatform

WEBHOOK_SECRET = "a-secret-of-the-webhook-" * 2
NONSENSE: tuple[Any, ...] = (None, [], 7, "", {}, {"id": None}, {"id": {}, "chat": [], "from": 1})


class MemoryCase(PostingCase[MemoryPlatform]):
    posts = "post"

    async def hear_itself(self) -> None:
        await self.platform.echo(self.chat, "my own words")

    async def hear_nonsense(self) -> None:
        for odd in NONSENSE:
            for kind in ("message", "voice", "press", "dance"):
                event = {"kind": kind, "text": odd, "data": odd, "handle": odd}
                await self.platform.tell({"id": "odd", "chat": "c", "from": "p", "bot": False, **event})
                await self.platform.tell({"kind": kind, "id": odd, "chat": odd, "from": odd, "bot": False})


class TelegramCase(PostingCase[FakeTelegram]):
    posts = "sendMessage"

    async def start(self) -> None:
        # The channel is up when a poll has returned, which one with something to bring does at once.
        self.platform.push("dance", {})
        await super().start()

    async def hear_itself(self) -> None:
        # The Bot API's documentation promises no silence about them, so the adapter must not count on it.
        me = Person(id=str(BOT_ID), name="bot", bot=True)
        await self.platform.say(self.chat, me, "my own words")

    async def hear_nonsense(self) -> None:
        for odd in NONSENSE:
            for kind in (
                "message",
                "edited_message",
                "callback_query",
                "stopped_message_generation",
                "dance",
            ):
                body = {"message_id": odd, "from": odd, "chat": odd, "text": odd, "data": odd, "voice": odd}
                self.platform.push(kind, odd)
                self.platform.push(kind, {**body, "id": odd, "message": odd, "entities": odd})


class DiscordCase(PostingCase[FakeDiscord]):
    posts = "create_message"

    async def hear_itself(self) -> None:
        bot = self.platform.world.bot
        me = Person(id=bot.id, name=bot.name, bot=True)
        await self.platform.send(self.chat, me, "my own words")

    async def hear_nonsense(self) -> None:
        # Within what discord.py itself reads, as it reads every event of a kind that it knows before anyone.
        message = self.platform.world.add(self.chat.chat, self.ann.id, "")
        wire = {**self.platform.world.message_wire(message, gateway=True), "content": ""}
        for odd in NONSENSE:
            await self._dispatch("DANCE", odd)
            for kind in (0, 19, 77):
                await self._dispatch("MESSAGE_CREATE", {**wire, "type": kind, "dance": odd})
                await self._dispatch(
                    "MESSAGE_CREATE", {**wire, "type": kind, "author": {**wire["author"], "bot": odd}}
                )

    async def press(self, question: ApprovalRequired, option: str) -> str:
        words = await super().press(question, option)
        if self.inbox.refuse:
            # The buttons go first; the words follow in a separate message.
            interaction = self.platform.interactions.all()[-1]
            await self.platform.until(lambda: interaction.words != "")
            return interaction.words
        return words

    async def _dispatch(self, name: str, data: Any) -> None:
        for session in tuple(self.platform.gateway.sessions.values()):
            await self.platform.gateway._give(session, name, data)


class SlackCase(PostingCase[FakeSlack]):
    posts = "chat.postMessage"

    async def hear_itself(self) -> None:
        workspace = self.platform.workspace
        own = next(posted for posted in workspace.messages if posted.ours)
        self.platform.delivery.offer("events_api", workspace.event(workspace.message_event(own)))

    async def hear_nonsense(self) -> None:
        offer, event = self.platform.delivery.offer, self.platform.workspace.event
        for odd in NONSENSE:
            body = {"ts": odd, "channel": odd, "user": odd, "text": odd, "files": odd, "blocks": odd}
            for kind in ("message", "app_mention", "dance", odd):
                offer("events_api", event({**body, "type": kind}))
                offer(
                    "events_api", event({**body, "type": kind, "subtype": "message_changed", "message": odd})
                )
            offer("interactive", {"type": "block_actions", "actions": [{}], "container": odd, **body})
            offer("interactive", {"type": odd, **body})
            offer("slash_commands", {"command": odd, "channel_id": odd, "user_id": odd, "text": odd})


@asynccontextmanager
async def memory(tmp_path: Path) -> AsyncIterator[ContractCase]:
    posts = MemoryPosts(rates=RateLimits(chat_per_s=1.0, chat_burst=3), typing_s=5.0)
    async with (
        MemoryPlatform(posts) as platform,
        running(lambda tasks: MemoryCase(platform, platform.posts, tasks)) as case,
    ):
        yield case


@asynccontextmanager
async def telegram(tmp_path: Path) -> AsyncIterator[ContractCase]:
    async with FakeTelegram(lenient=True) as platform:
        settings = TelegramOptions(token=lambda: platform.token, api_base=platform.api_base, poll_s=1)
        adapter = TelegramAdapter(settings, SystemClock())
        async with running(lambda tasks: TelegramCase(platform, adapter, tasks)) as case:
            case.secrets = (platform.token,)
            yield case


@asynccontextmanager
async def telegram_webhook(tmp_path: Path) -> AsyncIterator[ContractCase]:
    """Received by webhook, and with answers that are simply posted."""
    async with FakeTelegram(lenient=True) as platform:
        listener = socket.create_server(("127.0.0.1", 0))
        settings = TelegramOptions(
            token=lambda: platform.token,
            api_base=platform.api_base,
            mode="webhook",
            webhook_url=f"http://127.0.0.1:{listener.getsockname()[1]}/hooks/telegram",
            webhook_secret=lambda: WEBHOOK_SECRET,
            replies="plain",
        )
        adapter = TelegramAdapter(settings, SystemClock())
        async with (
            _served(adapter.routes(), listener),
            running(lambda tasks: TelegramCase(platform, adapter, tasks)) as case,
        ):
            case.secrets = (platform.token, WEBHOOK_SECRET)
            yield case


@asynccontextmanager
async def discord(tmp_path: Path) -> AsyncIterator[ContractCase]:
    async with FakeDiscord() as platform:
        platform.lenient = True
        settings = DiscordOptions(
            token=lambda: platform.token, api_base=platform.api_base, gateway_url=platform.gateway_url
        )
        adapter = DiscordAdapter(settings, MemoryTimeline(), SystemClock())
        async with running(lambda tasks: DiscordCase(platform, adapter, tasks)) as case:
            case.secrets = (platform.token,)
            yield case


@asynccontextmanager
async def slack(tmp_path: Path) -> AsyncIterator[ContractCase]:
    async with FakeSlack() as platform:
        platform.lenient = True
        settings = SlackOptions(
            bot_token=lambda: platform.bot_token,
            app_token=lambda: platform.app_token,
            api_base=f"{platform.base}/api/",
        )
        adapter = SlackAdapter(settings, SystemClock())
        async with running(lambda tasks: SlackCase(platform, adapter, tasks)) as case:
            case.secrets = (platform.bot_token, platform.app_token)
            yield case


@asynccontextmanager
async def slack_http(tmp_path: Path) -> AsyncIterator[ContractCase]:
    """By signed HTTP in place of a socket."""
    async with FakeSlack(http=True) as platform:
        platform.lenient = True
        listener = socket.create_server(("127.0.0.1", 0))
        settings = SlackOptions(
            bot_token=lambda: platform.bot_token,
            signing_secret=lambda: platform.signing_secret,
            mode="http",
            api_base=f"{platform.base}/api/",
        )
        adapter = SlackAdapter(settings, SystemClock())
        platform.delivery.deliver_to = f"http://127.0.0.1:{listener.getsockname()[1]}{settings.path}"
        async with (
            _served(adapter.routes(), listener),
            running(lambda tasks: SlackCase(platform, adapter, tasks)) as case,
        ):
            case.secrets = (platform.bot_token, platform.signing_secret)
            yield case


@asynccontextmanager
async def _served(routes: Iterable[RouteDef], listener: socket.socket) -> AsyncIterator[None]:
    """The gateway's HTTP server, with the routes of one channel."""
    app = Application()
    app.add_routes(routes)
    runner = AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    await SockSite(runner, listener).start()
    try:
        yield
    finally:
        await runner.cleanup()


CASES: tuple[Factory, ...] = (
    web,
    console,
    memory,
    telegram,
    telegram_webhook,
    slack,
    slack_http,
    discord,
)
