"""Death around the posting of a file on Telegram, Slack and Discord: the text and the file, each once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipeline.domain.clock import SystemClock
from tests.support.file_talk import SAID, file_settings, share, think_of_files
from tests.support.gateway_process import GatewayProcess, up
from tests.support.openai_server import FakeOpenAiServer
from tests.support.pictures import png
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform, Place
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from tests.support.store_file import integrity, stored_messages

pytestmark = pytest.mark.crash

_CRASHED = 137
_CLOCK = SystemClock()
_CHART = png(320, 200)
_CASES = [
    *(
        (make, label)
        for make in (FakeTelegram, FakeSlack, FakeDiscord)
        for label in ("send-before:2", "send-after:2")
    ),
    *((FakeTelegram, label) for label in ("turn-commit-before:1", "turn-commit-after:1", "receipt-before:1")),
]
"""The text passes the labels of a send first, the file second."""


def _shown(platform: FakePlatform, chat: Place) -> list[tuple[str, bytes, str]]:
    """What the person sees of the bot: text, content of a file, and what the file is shown as."""
    return [
        (one.text, one.file, one.file_kind)
        for one in platform.visible(chat)
        if not one.author and not one.native_id.startswith("draft")
    ]


def _states(gateway: GatewayProcess) -> list[list[str]]:
    """The state of the reply to each message."""
    stored = stored_messages(gateway.store_path)
    return [[state for state, _ in one.outbox] for one in stored.values()]


@pytest.mark.parametrize(("make", "label"), _CASES)
async def test_death_around_a_file_shows_the_text_and_the_file_once(
    tmp_path: Path, make: type[FakeTelegram | FakeSlack | FakeDiscord], label: str
) -> None:
    platform: FakePlatform = make()
    async with platform, FakeOpenAiServer(brain=think_of_files) as model:
        overrides = [*file_settings(model.api_base), *platform.overrides(tmp_path)]
        async with GatewayProcess(tmp_path, overrides=overrides) as gateway:
            share(gateway.data_dir, "chart.png", _CHART)
            ann = platform.person("ann")
            chat = platform.private_chat(ann)
            await gateway.start()
            await up(gateway, platform.name)
            # Discord tells a bot that comes back what it missed only in chats that it knows.
            await platform.say(chat, ann, "hello")
            await platform.until(lambda: platform.bot_texts(chat) == ["You said: hello"])
            assert await gateway.stop() == 0

            await gateway.start(crash_at=label)
            await platform.say(chat, ann, "send chart.png")
            assert await gateway.wait_exit() == _CRASHED

            await gateway.start()
            # A repeat may come and go in between: the reply is over when it is on record as sent.
            async with asyncio.timeout(60):
                while _states(gateway) != [["sent"], ["sent"]]:
                    await _CLOCK.sleep(0.05)
            await platform.until(lambda: platform.unacknowledged() == 0)
            assert await gateway.stop() == 0
            assert _shown(platform, chat) == [
                ("You said: hello", b"", ""),
                (SAID, b"", ""),
                ("As wished", _CHART, "image"),
            ]
            assert integrity(gateway.store_path) == "ok"
