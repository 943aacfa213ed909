"""A SlackAdapter beside a FakeSlack, with an inbox that remembers what came in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from adapters.channel import Acceptance, Outgoing
from adapters.slack.adapter import SlackAdapter
from adapters.slack.inbound import Bot
from adapters.slack.settings import SlackOptions
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound, InboundMessage
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.slack_state import APP, BOT, BOT_USER, TEAM

ME = Bot(user=BOT_USER, bot=BOT, team=TEAM, app=APP)


class Inbox:
    """What a gateway would have committed. `gate` holds a commit back; `failures` are raised in order."""

    def __init__(self) -> None:
        self.items: list[Inbound] = []
        self.calls = 0
        self.failures: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.entered = asyncio.Event()
        self.verdict = Acceptance(status="accepted", message_id="m_1")

    async def __call__(self, item: Inbound) -> Acceptance:
        self.calls += 1
        self.entered.set()
        if self.failures:
            raise self.failures.pop(0)
        if self.gate is not None:
            await self.gate.wait()
        if any(known.native_id == item.native_id for known in self.items):
            return Acceptance(status="duplicate", message_id=item.message_id)
        self.items.append(item)
        return self.verdict

    def texts(self) -> list[str]:
        return [item.text for item in self.items if isinstance(item, InboundMessage)]


def settings_for(slack: FakeSlack, **changes: Any) -> SlackOptions:
    values: dict[str, Any] = {
        "bot_token": lambda: slack.bot_token,
        "app_token": lambda: slack.app_token,
        "signing_secret": lambda: slack.signing_secret,
        "mode": "http" if slack.http else "socket",
        "api_base": f"{slack.base}/api/",
        "ping_s": 1.0,
    }
    return SlackOptions(**{**values, **changes})


class Running:
    """An adapter that receives."""

    def __init__(self, slack: FakeSlack, adapter: SlackAdapter, inbox: Inbox) -> None:
        self.slack = slack
        self.adapter = adapter
        self.inbox = inbox

    async def until(self, holds: Callable[[], bool]) -> None:
        await self.slack.until(holds, timeout_s=60)

    async def heard_all(self) -> None:
        """Everything that Slack has to say was acknowledged."""
        await self.until(lambda: self.slack.unacknowledged() == 0)


@asynccontextmanager
async def running(slack: FakeSlack, *, clock: Clock | None = None, **changes: Any) -> AsyncIterator[Running]:
    """The adapter runs inside the block, over Socket Mode, or over HTTP on a separate server."""
    inbox = Inbox()
    adapter = SlackAdapter(settings_for(slack, **changes), clock or SystemClock())
    app = web.Application()
    app.add_routes(adapter.routes())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    if slack.http:
        slack.delivery.deliver_to = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    async with asyncio.TaskGroup() as tasks:
        receiving = tasks.create_task(adapter.run(inbox))
        try:
            while adapter.health().state != "up" and not receiving.done():  # noqa: ASYNC110 - it is asked
                await asyncio.sleep(0.005)
            yield Running(slack, adapter, inbox)
        finally:
            receiving.cancel()
            await asyncio.wait((receiving,))
            await runner.cleanup()


def thread_of(chat: str, topic: str | None = None) -> ThreadKey:
    return ThreadKey(channel="slack", account="main", chat=chat, topic=topic)


def question(interaction_id: str, *options: str) -> ApprovalRequired:
    return ApprovalRequired(
        session_id="s",
        message_id="m_1",
        interaction_id=interaction_id,
        tool_name="tool",
        reasoning="because",
        options=options,
        timeout_s=0,
    )


async def ask(live: Running, chat: str, topic: str | None = None) -> str:
    """A question with two buttons; the native id of its message."""
    asked = question("i1", "Yes <!channel>", "No")
    part = live.adapter.render(Outgoing(text="May I?", questions=(asked,)))[0]
    return (await live.adapter.post(thread_of(chat, topic), part, key="k")).native_id
