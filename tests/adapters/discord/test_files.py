"""Voice messages and other files: heard as references, fetched within bounds from Discord's servers alone."""

from __future__ import annotations

import pytest

from adapters.discord.download import DiscordDownloads
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.messages import InboundMessage, MediaRef
from tests.adapters.discord.harness import Bot, bot_for
from tests.adapters.fakes import QuickClock
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Fault

AUDIO = b"OggS" + bytes(range(256)) * 400


async def voice_ref(fake: FakeDiscord, bot: Bot) -> MediaRef:
    """A voice message that the bot has heard."""
    ada = fake.person("ada")
    await fake.speak(fake.private_chat(ada), ada, AUDIO, mime="audio/ogg")
    await fake.until(lambda: bool(bot.inbox.items))
    item = bot.inbox.items[-1]
    assert isinstance(item, InboundMessage)
    assert item.voice is not None
    return item.voice


async def test_a_voice_message_is_heard_and_its_bytes_are_fetched(fake: FakeDiscord, bot: Bot) -> None:
    async with bot.running():
        ref = await voice_ref(fake, bot)
        content = await bot.adapter.download(ref, max_bytes=len(AUDIO))

    assert (ref.kind, ref.size) == ("voice", len(AUDIO))
    assert content == AUDIO


async def test_a_link_that_has_ended_is_no_matter(fake: FakeDiscord, bot: Bot) -> None:
    async with bot.running():
        ref = await voice_ref(fake, bot)
        fake.world.link_version += 1
        assert await bot.adapter.download(ref, max_bytes=len(AUDIO)) == AUDIO


async def test_a_file_that_is_too_large_is_not_fetched(fake: FakeDiscord, bot: Bot) -> None:
    async with bot.running():
        ref = await voice_ref(fake, bot)
        with pytest.raises(MediaUnavailable, match="larger than"):
            await bot.adapter.download(ref, max_bytes=len(AUDIO) - 1)

    assert fake.rest.cdn_hits == 0


async def test_a_file_that_grows_on_its_way_is_cut_off(fake: FakeDiscord, bot: Bot) -> None:
    async with bot.running():
        ref = await voice_ref(fake, bot)
        fake.rest.cdn_extra = AUDIO
        with pytest.raises(MediaUnavailable, match="larger than"):
            await bot.adapter.download(ref, max_bytes=len(AUDIO))


async def test_a_redirect_to_elsewhere_is_not_followed(fake: FakeDiscord, bot: Bot) -> None:
    async with bot.running():
        ref = await voice_ref(fake, bot)
        fake.rest.cdn_redirect = fake.api_base + "/users/@me"
        before = len(fake.calls)
        with pytest.raises(MediaUnavailable):
            await bot.adapter.download(ref, max_bytes=len(AUDIO))

    # The bot lists its commands beside its work, which may come late.
    called = [call.method for call in fake.calls[before:] if call.method != "put_commands"]
    assert called == ["get_message"]


async def test_a_deleted_message_is_reported_in_words(fake: FakeDiscord, bot: Bot) -> None:
    async with bot.running():
        ref = await voice_ref(fake, bot)
        fake.world.of(bot.inbox.items[-1].thread.chat)[0].deleted = True
        with pytest.raises(MediaUnavailable, match="send it again"):
            await bot.adapter.download(ref, max_bytes=len(AUDIO))


async def test_an_outage_is_waited_for_and_reported_in_words(fake: FakeDiscord) -> None:
    bot = bot_for(fake, clock=QuickClock())
    async with bot.running():
        ref = await voice_ref(fake, bot)
        fake.faults.script.append(Fault(method="get_message", kind="error_before"))
        assert await bot.adapter.download(ref, max_bytes=len(AUDIO)) == AUDIO
        fake.faults.script.extend([Fault(method="get_message", kind="error_before")] * 4)
        with pytest.raises(MediaUnavailable, match=r"from Discord\. Please send it again later") as caught:
            await bot.adapter.download(ref, max_bytes=len(AUDIO))
        assert "500" in caught.value.detail
        assert "500" not in str(caught.value)


@pytest.mark.parametrize("handle", ["", "1/2", "1/2/3/4", "../2/3", "1/2/x", "1/2/3?x", "1/2/3\n", "٤/2/3"])
async def test_a_handle_of_another_form_is_refused_before_any_call(
    fake: FakeDiscord, bot: Bot, handle: str
) -> None:
    async with bot.running():
        await fake.until(lambda: bool(fake.rest.commands))
        before = len(fake.calls)
        for channel in ("discord", "telegram"):
            with pytest.raises(MediaUnavailable, match="not a file of the Discord channel"):
                await bot.adapter.download(MediaRef(channel=channel, handle=handle), max_bytes=10)

    assert len(fake.calls) == before


@pytest.mark.parametrize(
    ("url", "trusted"),
    [
        ("https://cdn.discordapp.com/attachments/1/2/a.ogg?ex=1", True),
        ("https://media.discordapp.net/a", True),
        ("http://cdn.discordapp.com/a", False),
        ("https://cdn.discordapp.com.evil.example/a", False),
        ("https://cdn.discordapp.com@evil.example/a", False),
        ("https://evil@cdn.discordapp.com/a", False),
        ("https://cdn.discordapp.com:8443/a", False),
        ("https://169.254.169.254/latest", False),
        ("file:///etc/passwd", False),
        ("http://127.0.0.1:99/a", True),
        ("http://127.0.0.1:98/a", False),
        ("ftp://127.0.0.1:99/a", False),
        ("https://[::1/a", False),
    ],
)
def test_only_discords_own_file_servers_are_trusted(bot: Bot, url: str, trusted: bool) -> None:
    downloads = DiscordDownloads(bot.adapter._rest, bot.adapter._clock, "http://127.0.0.1:99/api/v10")

    assert downloads._is_trusted(url) is trusted
