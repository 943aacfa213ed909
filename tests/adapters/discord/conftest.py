"""The fixtures of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.adapters.discord.harness import Bot, bot_for, platform
from tests.support.platforms.discord import FakeDiscord


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with platform() as discord:
        yield discord


@pytest.fixture
async def bot(fake: FakeDiscord) -> Bot:
    return bot_for(fake)
