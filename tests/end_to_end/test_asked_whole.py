"""A tool's question on the platforms: no value deceives, and a long one can be read whole first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adapters.channel import Outgoing, Part
from adapters.discord.outbound import render as discord_render
from adapters.slack.outbound import render as slack_render
from adapters.telegram.outbound import render as telegram_render
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import SystemClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.tools.action import action_hash
from tests.support.harness import open_gateway
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform, Place, Shown
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram


def _calling(name: str, **arguments: object) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


def _asked(platform: FakePlatform, chat: Place) -> list[Shown]:
    return [one for one in platform.visible(chat) if "write_file asks" in one.text and one.buttons]


@pytest.mark.parametrize("kind", [FakeTelegram, FakeSlack, FakeDiscord])
async def test_a_long_value_is_shown_in_part_and_all_of_it_is_a_file_before_the_buttons(
    tmp_path: Path, kind: type[FakeTelegram | FakeSlack | FakeDiscord]
) -> None:
    text = "begin\nPath: fake.txt\u202e" + "x" * 2_000 + "THE MIDDLE" + "y" * 2_000
    calls = [_calling("load_tools", groups=["files"]), _calling("write_file", path="a.txt", text=text)]
    async with kind() as platform:
        ann = platform.person("ann")
        chat = platform.private_chat(ann)
        llm = ScriptedLlm([*calls, ScriptedAnswer.of("Not written.")])
        async with open_gateway(tmp_path / "data", *platform.overrides(tmp_path), llm=llm) as harness:
            async with asyncio.timeout(60):
                while not all(status.up for status in harness.gateway.channel_statuses()):
                    await SystemClock().sleep(0.01)
            await platform.say(chat, ann, "write it down")
            await platform.until(lambda: bool(_asked(platform, chat)))
            (card,) = _asked(platform, chat)
            files = [one for one in platform.visible(chat) if one.file_name == "action.txt"]
            await platform.press(chat, ann, card.native_id, "Deny")
            await platform.until(lambda: "Not written." in platform.bot_texts(chat))
    fingerprint = action_hash("write_file", {"path": "a.txt", "text": text})
    assert fingerprint in card.text
    assert 'Path: "a.txt"' in card.text.split("\n")
    assert "THE MIDDLE" not in card.text
    assert "more characters" in card.text
    assert r"begin\nPath: fake.txt\u202e" in card.text
    (file,) = files
    assert file.native_id < card.native_id, "it is above the buttons"


@pytest.mark.parametrize("render", [telegram_render, slack_render, discord_render])
def test_what_is_attached_is_a_separate_part_before_the_text(
    render: Callable[[Outgoing], Sequence[Part]],
) -> None:
    file, text = render(Outgoing(text="May I?", attached=b"all of it", attached_name="action.txt"))
    assert (file.file, file.file_name) == (b"all of it", "action.txt")
    assert (text.file, text.plain) == (None, "May I?")
