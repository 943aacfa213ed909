"""Fetching files: only by a handle, only from the Bot API server, never more than allowed."""

from __future__ import annotations

import pytest

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramOptions
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.messages import InboundMessage, MediaRef
from tests.adapters.fakes import QuickClock
from tests.adapters.telegram.harness import idle, running


def ref(handle: str, channel: str = "telegram") -> MediaRef:
    return MediaRef(channel=channel, handle=handle)


async def test_a_voice_note_is_fetched_by_its_handle() -> None:
    async with running() as harness:
        await harness.fake.speak(harness.place, harness.ann, b"OggS" * 1000, mime="audio/ogg")
        await harness.arrived(1)
        (item,) = harness.inbox.items
        assert isinstance(item, InboundMessage)
        assert item.voice is not None
        assert (item.voice.kind, item.voice.size, item.voice.mime) == ("voice", 4000, "audio/ogg")
        assert await harness.adapter.download(item.voice, max_bytes=4000) == b"OggS" * 1000
        with pytest.raises(MediaUnavailable, match="larger"):
            await harness.adapter.download(item.voice, max_bytes=3999)


async def test_a_file_that_turns_out_larger_than_it_said_is_cut_off() -> None:
    async with idle() as harness:
        harness.fake.state.files["liar"] = b"x" * 5_000_000
        harness.fake.state.sizes["liar"] = 10
        with pytest.raises(MediaUnavailable, match="larger"):
            await harness.adapter.download(ref("liar"), max_bytes=100_000)


@pytest.mark.parametrize("handle", ["", "../x", "a/b", "x" * 251, "a b", "http://evil.example/x", "x\n"])
async def test_a_handle_that_is_none_makes_no_call(handle: str) -> None:
    async with idle() as harness:
        with pytest.raises(MediaUnavailable):
            await harness.adapter.download(ref(handle), max_bytes=100)
        assert harness.fake.calls == []


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../b", "http://evil.example/x", "a//b", 5, ""])
async def test_a_path_that_leads_away_is_not_followed(path: object) -> None:
    async with idle() as harness:
        harness.fake.state.files["odd"] = b"x"
        harness.fake.state.paths["odd"] = path
        with pytest.raises(MediaUnavailable):
            await harness.adapter.download(ref("odd"), max_bytes=100)


async def test_what_is_gone_or_of_another_channel_is_unavailable_in_words() -> None:
    async with idle() as harness:
        with pytest.raises(MediaUnavailable, match="no longer"):
            await harness.adapter.download(ref("gone"), max_bytes=100)
        harness.fake.state.files["big"] = b"x" * (20 * 1024 * 1024 + 1)
        with pytest.raises(MediaUnavailable, match="20 MB"):
            await harness.adapter.download(ref("big"), max_bytes=10**9)
        with pytest.raises(MediaUnavailable):
            await harness.adapter.download(ref("file", channel="slack"), max_bytes=100)


async def test_a_server_that_is_not_there_is_reported_without_the_token() -> None:
    token = "1:" + "x" * 35
    settings = TelegramOptions(token=lambda: token, api_base="http://127.0.0.1:1")
    with pytest.raises(MediaUnavailable, match=r"from Telegram\. Please send it again later") as caught:
        await TelegramAdapter(settings, QuickClock()).download(ref("file"), max_bytes=100)
    assert "cannot be reached" in caught.value.detail
    assert token not in str(caught.value) + caught.value.detail


async def test_telegrams_own_words_about_a_file_are_the_operators_alone() -> None:
    async with idle() as harness:
        with pytest.raises(MediaUnavailable) as caught:
            await harness.adapter.download(ref("gone"), max_bytes=100)
        assert str(caught.value) == "Telegram no longer has this file. Please send it again."
        assert caught.value.detail.startswith("Telegram refuses it: ")
