"""The reaction that says that a message is taken, after a process ended before it removed it.

Covers: gateway/delivery/acknowledgements.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from pipeline.domain.clock import SystemClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Place
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

Fake = FakeTelegram | FakeSlack | FakeDiscord


@pytest.fixture(params=["telegram", "slack", "discord"])
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[Fake]:
    fakes: dict[str, Fake] = {"telegram": FakeTelegram(), "slack": FakeSlack(), "discord": FakeDiscord()}
    async with fakes[request.param] as fake:
        yield fake


def _shown(platform: Fake) -> bool:
    """Whether the bot has a reaction on any message."""
    match platform:
        case FakeTelegram():
            return any(platform.state.reactions.values())
        case FakeSlack():
            return bool(platform.workspace.reactions)
        case FakeDiscord():
            return bool(platform.rest.reactions.shown)


def _leave_reaction(platform: Fake, chat: Place, message: str) -> None:
    """Put the bot's reaction on the message, as a process did that ended before it removed it."""
    match platform:
        case FakeTelegram():
            platform.state.reactions[int(chat.chat), int(message)] = "\N{EYES}"
        case FakeSlack():
            platform.workspace.reactions.append((chat.chat, message.partition(":")[2], "eyes"))
        case FakeDiscord():
            platform.rest.reactions.shown.add((chat.chat, message))


def _gateway(
    data: Path, platform: Fake, reactions: str = "taken", *, llm: ScriptedLlm | None = None
) -> AbstractAsyncContextManager[GatewayHarness]:
    data.mkdir(exist_ok=True)
    setting = f'channels.{platform.name}.reactions="{reactions}"'
    return open_gateway(data, *platform.overrides(data), setting, llm=llm, drain_s=0)


async def _connected(harness: GatewayHarness) -> None:
    async with asyncio.timeout(60):
        while not all(status.up for status in harness.gateway.channel_statuses()):
            await SystemClock().sleep(0.01)


async def test_a_reaction_on_an_answered_message_is_removed_at_the_next_start(
    tmp_path: Path, platform: Fake
) -> None:
    ann = platform.person("ann")
    chat = platform.private_chat(ann)
    async with _gateway(tmp_path, platform) as harness:
        await _connected(harness)
        said = await platform.say(chat, ann, "hello")
        await platform.until(lambda: platform.bot_texts(chat) == ["You said: hello"])
        while await harness.store.outbox_open():
            await SystemClock().sleep(0.01)
    _leave_reaction(platform, chat, said)
    assert _shown(platform)
    async with _gateway(tmp_path, platform):
        await platform.until(lambda: not _shown(platform))
    assert platform.bot_texts(chat) == ["You said: hello"]


async def test_a_reaction_of_a_turn_that_a_restart_interrupted_is_removed_with_its_answer(
    tmp_path: Path, platform: Fake
) -> None:
    ann = platform.person("ann")
    chat = platform.private_chat(ann)
    stuck = ScriptedLlm([ScriptedAnswer(chunks=("x",), gate=asyncio.Event(), gate_at=0)])
    async with _gateway(tmp_path, platform, llm=stuck) as harness:
        await _connected(harness)
        await platform.say(chat, ann, "hello")
        await platform.until(lambda: _shown(platform))
    assert _shown(platform)
    async with _gateway(tmp_path, platform):
        await platform.until(lambda: platform.bot_texts(chat) == ["You said: hello"])
        await platform.until(lambda: not _shown(platform))


async def test_the_sign_of_work_in_a_direct_chat_of_slack_is_removed_too(tmp_path: Path) -> None:
    async with FakeSlack() as slack:
        ann = slack.person("ann")
        chat = slack.private_chat(ann)
        async with _gateway(tmp_path, slack, "auto") as harness:
            await _connected(harness)
            said = await slack.say(chat, ann, "hello")
            await slack.until(lambda: slack.bot_texts(chat) == ["You said: hello"])
        _leave_reaction(slack, chat, said)
        async with _gateway(tmp_path, slack, "auto"):
            await slack.until(lambda: not _shown(slack))
        assert slack.bot_texts(chat) == ["You said: hello"]


async def test_without_reactions_nothing_is_removed(tmp_path: Path, platform: Fake) -> None:
    ann = platform.person("ann")
    chat = platform.private_chat(ann)
    async with _gateway(tmp_path, platform, "none") as harness:
        await _connected(harness)
        await platform.say(chat, ann, "hello")
        await platform.until(lambda: platform.bot_texts(chat) == ["You said: hello"])
    before = len(platform.calls)
    async with _gateway(tmp_path, platform, "none") as harness:
        await _connected(harness)
        await platform.say(chat, ann, "again")
        await platform.until(lambda: platform.bot_texts(chat)[-1] == "You said: again")
    methods = {call.method for call in platform.calls[before:]}
    assert not methods & {"setMessageReaction", "reactions.remove", "unreact"}
