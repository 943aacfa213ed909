"""A download that fails in passing is tried again; what is gone, and what is refused, is said in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from adapters.channel import ChannelAdapter
from adapters.downloads import WAITS_S, NotNow, fetched
from adapters.slack.adapter import SlackAdapter
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.messages import InboundMessage, MediaRef
from tests.adapters.discord.harness import bot_for, platform
from tests.adapters.fakes import QuickClock
from tests.adapters.slack.harness import settings_for
from tests.adapters.telegram.harness import idle
from tests.support.platforms.slack import FakeSlack

SOUND = b"OggS" * 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformFiles:
    """An adapter, a file that its platform keeps, and the statuses that the next downloads meet."""

    adapter: ChannelAdapter
    ref: MediaRef
    failures: list[int]
    clock: QuickClock

    async def fetch(self) -> bytes:
        return await self.adapter.download(self.ref, max_bytes=len(SOUND))


@asynccontextmanager
async def platform_files(name: str) -> AsyncIterator[PlatformFiles]:
    clock = QuickClock()
    if name == "telegram":
        async with idle(clock=clock) as harness:
            harness.fake.state.files["sound"] = SOUND
            yield PlatformFiles(
                adapter=harness.adapter,
                ref=MediaRef(channel="telegram", handle="sound"),
                failures=harness.fake.state.file_failures,
                clock=clock,
            )
    elif name == "slack":
        async with FakeSlack() as slack:
            ann = slack.person("ann")
            await slack.share(slack.private_chat(ann), ann, SOUND, mime="audio/mp4")
            handle = slack.workspace.messages[-1].files[0]["id"]
            yield PlatformFiles(
                adapter=SlackAdapter(settings_for(slack), clock),
                ref=MediaRef(channel="slack", handle=handle),
                failures=slack.workspace.file_failures,
                clock=clock,
            )
    else:
        async with platform() as fake:
            bot = bot_for(fake, clock=clock)
            async with bot.running():
                ada = fake.person("ada")
                await fake.speak(fake.private_chat(ada), ada, SOUND, mime="audio/ogg")
                await fake.until(lambda: bool(bot.inbox.items))
                (item,) = bot.inbox.items
                assert isinstance(item, InboundMessage)
                assert item.voice is not None
                clock.waits.clear()
                yield PlatformFiles(
                    adapter=bot.adapter, ref=item.voice, failures=fake.rest.file_failures, clock=clock
                )


@pytest.mark.parametrize("name", ["telegram", "slack", "discord"])
async def test_a_server_error_is_tried_again_and_only_a_missing_file_is_called_gone(name: str) -> None:
    async with platform_files(name) as one:
        one.failures.extend([500, 429, 503])
        assert await one.fetch() == SOUND
        assert one.failures == []

        one.failures.extend([500] * 5)
        with pytest.raises(MediaUnavailable, match=r"at the moment .*later") as failed:
            await one.fetch()
        assert "no longer" not in str(failed.value)
        assert one.failures == [500]

        for status in (404, 410):
            one.failures[:] = [status, status]
            with pytest.raises(MediaUnavailable, match="no longer has the file"):
                await one.fetch()
            assert one.failures == [status]

        one.failures[:] = [403, 403]
        with pytest.raises(MediaUnavailable, match="does not give the file out"):
            await one.fetch()
        assert one.failures == [403]


async def test_the_waits_are_short_grow_and_end() -> None:
    clock, tries = QuickClock(), 0

    async def broken() -> bytes:
        nonlocal tries
        tries += 1
        raise NotNow("the server is away", detail="HTTP 503")

    with pytest.raises(
        MediaUnavailable, match=r"the server is away\. Please send it again later\."
    ) as caught:
        await fetched(broken, clock)
    assert caught.value.detail == "HTTP 503"
    assert (clock.waits, tries) == (list(WAITS_S), 4)


async def test_a_wait_that_is_too_long_for_a_caller_who_waits_is_not_begun() -> None:
    async def limited() -> bytes:
        raise NotNow("the server asks to wait", retry_after_s=600.0)

    with pytest.raises(MediaUnavailable, match="asks to wait"):
        await fetched(limited, ManualClock())
