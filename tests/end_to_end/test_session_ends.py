"""Conversations that end after a time without messages: on the page, on a platform, over restarts, off the
record.

Covers: gateway/turns/session_ends.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.storage.ports import Record
from gateway.turns.session_ends import SESSION_END
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.llm.scripted import ScriptedLlm
from tests.support.gateway_process import free_port
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.platforms.telegram import FakeTelegram
from tests.support.web_client import WebChat

_AT_ONCE = "agent.session_idle_s=0.01"
_AN_HOUR = "agent.session_idle_s=3600"
_START = 1_900_000_000.0


async def _ask(harness: GatewayHarness, text: str) -> list[str]:
    """Say it; what the model saw of the conversation before."""
    accepted = await harness.channel.say(text)
    assert (await harness.channel.reply(accepted.message_id)).text == f"You said: {text}"
    return _seen(harness.llm)


def _seen(llm: ScriptedLlm) -> list[str]:
    return [message.content for message in llm.requests[-1].messages[1:-1]]


async def _sessions(harness: GatewayHarness, count: int, thread: str = THREAD) -> list[Record]:
    """The records of the thread's sessions, when there are `count`."""
    async with asyncio.timeout(60):
        while len(found := await harness.records("session", thread=thread)) < count:
            await SystemClock().sleep(0.01)
    assert len(found) == count
    return found


async def _due(harness: GatewayHarness, until: float) -> None:
    """Return when the one job that ends a session waits for that time."""
    async with asyncio.timeout(60):
        while [(job.kind, job.ready) for job in await harness.store.jobs.listed(limit=9)] != [
            (SESSION_END, until)
        ]:
            await SystemClock().sleep(0.01)


async def test_on_the_page_a_line_says_that_a_conversation_has_ended(tmp_path: Path) -> None:
    port = free_port()
    web = ("channels.web.enabled=true", f"server.port={port}", _AT_ONCE)
    async with open_gateway(tmp_path, *web) as harness, WebChat() as page:
        token = (tmp_path / "web-token").read_text(encoding="ascii").strip()
        await page.connect(f"http://127.0.0.1:{port}", token)
        await page.send_text("1", "I like tea")
        await page.answer(await page.accepted("1"))
        await page.wait_for(lambda frame: frame["type"] == "entry" and frame["role"] == "session")
        await page.send_text("2", "what do I like?")
        await page.answer(await page.accepted("2"))
        assert _seen(harness.llm) == []
    lines = [line for line in page.seen.lines if line.role == "session"]
    assert lines[0].text == "New conversation, after 1 second without a message"


async def test_on_a_platform_nothing_is_posted_and_the_next_message_begins_a_conversation(
    tmp_path: Path,
) -> None:
    agent = ("agents.shop.session_idle_s=0.01", "routes.1.channel=telegram", "routes.1.agent=shop")
    async with (
        FakeTelegram() as telegram,
        open_gateway(tmp_path / "data", *agent, *telegram.overrides(tmp_path)) as harness,
    ):
        ann = telegram.person("ann")
        chat = telegram.private_chat(ann)
        await telegram.say(chat, ann, "I like tea")
        await telegram.until(lambda: telegram.bot_texts(chat) == ["You said: I like tea"])
        await _sessions(harness, 2, f"telegram:main:{chat.chat}")
        await telegram.say(chat, ann, "and?")
        await telegram.until(lambda: telegram.bot_texts(chat) == ["You said: I like tea", "You said: and?"])
        assert _seen(harness.llm) == []
        # The default agent's conversations do not end.
        await _ask(harness, "I like tea")
        assert await _ask(harness, "and?") == ["I like tea", "You said: I like tea"]
        assert len(await harness.records("session")) == 1


async def test_a_message_within_the_time_keeps_the_conversation_and_a_restart_forgets_no_end(
    tmp_path: Path,
) -> None:
    async with open_gateway(tmp_path, _AN_HOUR, clock=ManualClock(_START)) as harness:
        await _ask(harness, "one")
        await _due(harness, _START + 3_600)
    async with open_gateway(tmp_path, _AN_HOUR, clock=ManualClock(_START + 3_000)) as harness:
        assert await _ask(harness, "two") == ["one", "You said: one"]
        await _due(harness, _START + 3_600)
    async with open_gateway(tmp_path, _AN_HOUR, clock=ManualClock(_START + 3_601)) as harness:
        await _due(harness, _START + 6_600)
        assert len(await _ask(harness, "three")) == 4
    async with open_gateway(tmp_path, _AN_HOUR, clock=ManualClock(_START + 7_202)) as harness:
        _, new = await _sessions(harness, 2)
        assert new.body == {"text": "New conversation, after 1 hour without a message"}
        assert await _ask(harness, "four") == []
        await _due(harness, _START + 7_202 + 3_600)


async def test_off_the_record_the_end_forgets_the_conversation_and_stays_off_the_record(
    tmp_path: Path,
) -> None:
    cook = ('agents.cook.system_prompt="You cook."', 'routes.1.also=["cook"]')
    async with open_gateway(tmp_path, _AT_ONCE, *cook) as harness:
        for command in ("/agent cook", "/otr"):
            await harness.channel.reply((await harness.channel.say(command)).message_id)
        await _ask(harness, "secret quokka")
        *_, ended = await _sessions(harness, 3)
        assert ended.body == {
            "text": "New conversation, off the record, after 1 second without a message",
            "mode": "otr",
            "agent": "cook",
        }
        assert await _ask(harness, "what did I say?") == []
        assert harness.llm.requests[-1].messages[0].content.startswith("You cook.")
        assert await harness.records("user") == []


async def test_an_end_of_a_conversation_that_is_over_already_does_nothing(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, _AN_HOUR, clock=ManualClock(_START)) as harness:
        await _ask(harness, "one")
        await harness.channel.reply((await harness.channel.say("/new")).message_id)
    async with open_gateway(tmp_path, _AN_HOUR, clock=ManualClock(_START + 3_601)) as harness:
        async with asyncio.timeout(60):
            while await harness.store.jobs.listed(limit=9):
                await SystemClock().sleep(0.01)
        assert [one.body.get("text") for one in await harness.records("session")] == [
            None,
            "New conversation",
        ]
