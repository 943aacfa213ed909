"""A question that is open while the gateway is started again: one message on the platform, one answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform, Place, Shown
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram


@asynccontextmanager
async def _process(tmp_path: Path, platform: FakePlatform, llm: ScriptedLlm) -> AsyncIterator[GatewayHarness]:
    async with open_gateway(tmp_path / "data", *platform.overrides(tmp_path), llm=llm) as harness:
        async with asyncio.timeout(60):
            while not all(status.up for status in harness.gateway.channel_statuses()):
                await SystemClock().sleep(0.01)
        yield harness


def _calling(name: str, **arguments: object) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


def _asked(platform: FakePlatform, chat: Place) -> list[Shown]:
    """The bot's messages that ask, with buttons or without."""
    return [one for one in platform.visible(chat) if "write_file asks" in one.text]


@pytest.mark.parametrize("kind", [FakeTelegram, FakeSlack, FakeDiscord])
async def test_an_open_question_appears_once_after_a_restart_and_its_answer_counts(
    tmp_path: Path, kind: type[FakeTelegram | FakeSlack | FakeDiscord]
) -> None:
    async with kind() as platform:
        ann = platform.person("ann")
        chat = platform.private_chat(ann)
        asking = ScriptedLlm(
            [_calling("load_tools", groups=["files"]), _calling("write_file", path="a.txt", text="hello")]
        )
        async with _process(tmp_path, platform, asking):
            await platform.say(chat, ann, "write it down")
            await platform.until(lambda: any(one.buttons for one in _asked(platform, chat)))
        (before,) = _asked(platform, chat)
        calls = len(platform.calls)
        llm = ScriptedLlm([ScriptedAnswer.of("Written.")])
        async with _process(tmp_path, platform, llm):
            asks = "May I use write_file"
            await platform.until(lambda: any(asks in str(call.payload) for call in platform.calls[calls:]))
            await platform.press(chat, ann, before.native_id, "Allow")
            await platform.until(lambda: "Written." in platform.bot_texts(chat))
            await platform.until(lambda: not any(one.buttons for one in _asked(platform, chat)))
            (after,) = _asked(platform, chat)
            assert after.native_id == before.native_id
    assert _written(tmp_path) == ["hello"]


def _written(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in folder.glob("data/workspace/people/*/files/a.txt")]
