"""Telegram, Slack and Discord at once in one gateway: the real SDKs against fake platforms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.domain.clock import SystemClock
from pipeline.domain.readings import FileReader
from pipeline.llm.client import LlmClient
from pipeline.llm.scripted import ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform, Place
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from voice.synthesis.synthesizer import SpeechSynthesizer
from voice.transcriber import Transcriber
from voice.transcription.scripted_transcriber import ScriptedTranscriber


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPlatforms:
    """Three platforms and a gateway that is connected to all of them."""

    harness: GatewayHarness
    telegram: FakeTelegram
    slack: FakeSlack
    discord: FakeDiscord

    @property
    def platforms(self) -> tuple[FakePlatform, ...]:
        """All three."""
        return self.telegram, self.slack, self.discord

    def private(self, name: str = "ann") -> list[tuple[FakePlatform, Place]]:
        """The person's private chat on each platform."""
        return [(one, one.private_chat(one.person(name))) for one in self.platforms]


@asynccontextmanager
async def open_all_platforms(
    tmp_path: Path,
    *overrides: str,
    llm: ScriptedLlm | None = None,
    model: LlmClient | None = None,
    transcriber: Transcriber | None = None,
    speaker: SpeechSynthesizer | None = None,
    file_reader: FileReader | None = None,
    limited: bool = False,
) -> AsyncIterator[AllPlatforms]:
    """Run the platforms and a gateway that is connected to all of them; `overrides` are settings of it.
    `model` replaces the scripted model. Only with `limited` do the platforms have their rate limits, and the
    gateway keeps them: after two or three messages, each one more takes a second.

    Voice notes say "hello" to a gateway without a `transcriber`.
    """
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(FakeTelegram())
        slack = await stack.enter_async_context(FakeSlack())
        discord = await stack.enter_async_context(FakeDiscord())
        settings = list(overrides)
        platforms: tuple[FakePlatform, ...] = (telegram, slack, discord)
        for platform in platforms:
            folder = tmp_path / platform.name
            folder.mkdir()
            settings += platform.overrides(folder)
            platform.lenient = not limited
            if not limited:
                settings.append(f"channels.{platform.name}.rate=0")
        transcriber = transcriber or ScriptedTranscriber.always("hello")
        harness = await stack.enter_async_context(
            open_gateway(
                tmp_path / "data",
                *settings,
                llm=llm,
                model=model,
                transcriber=transcriber,
                speaker=speaker,
                file_reader=file_reader,
            )
        )
        async with asyncio.timeout(60):
            # Discord does not deliver messages from before the bot's first connection.
            while not all(status.up for status in harness.gateway.channel_statuses()):
                await SystemClock().sleep(0.01)
        yield AllPlatforms(harness=harness, telegram=telegram, slack=slack, discord=discord)
