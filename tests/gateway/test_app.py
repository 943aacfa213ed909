"""The gateway's life with several channels: ready while one works; channels stay until all is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.channel import (
    Channel,
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    LiveView,
    OnInbound,
    Outgoing,
    Part,
    Receipt,
    Timeline,
)
from gateway.access import AccessRule
from gateway.app import Gateway
from gateway.bootstrap import Extras, build
from gateway.config import Secrets, load
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ConfigurationError, MediaUnavailable, StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.posting_channel import MemoryPosts
from voice.scripted import ScriptedTranscriber


class _Poster:
    """A channel with messages on somebody else's server, which receives or refuses to."""

    name = "telegram"
    account = "main"
    capabilities = ChannelCapabilities(text_limit=100)

    def __init__(self, *, refused: bool = False) -> None:
        self.state = ChannelHealth(state="starting")
        self.ended = asyncio.Event()
        self._refused = refused

    async def run(self, on_inbound: OnInbound) -> None:
        if self._refused:
            raise ConfigurationError("channels.telegram.token: refused; make a new one")
        self.state = ChannelHealth(state="up", detail="long poll")
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        raise MediaUnavailable("nothing here")

    def classify(self, error: Exception) -> Failure:
        return Failure(kind="unknown", message="")

    def health(self) -> ChannelHealth:
        return self.state

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        return (Part(body={}, plain=outgoing.text),)

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        return Receipt(native_id=key)

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        return Receipt(native_id=native_id)

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:
        return None

    def open_view(
        self,
        thread: ThreadKey,
        *,
        key: str,
        reply_handle: str,
        native_id: str,
        doubtful_since: float | None = None,
    ) -> LiveView | None:
        return None

    async def typing(self, thread: ThreadKey) -> None:
        return None


@asynccontextmanager
async def _running(
    folder: Path,
    *channels: Channel,
    llm: ScriptedLlm | None = None,
    rules: Mapping[tuple[str, str], AccessRule] | None = None,
) -> AsyncIterator[Gateway]:
    settings = load(None, {}, ["channels.web.enabled=false", f'data.dir="{folder}"'])
    extras = Extras(
        channels=tuple(_given(channel) for channel in channels),
        rules=rules or {},
        llm=llm or ScriptedLlm.echo(),
        transcriber=ScriptedTranscriber(),
        store=MemoryStore(),
        http=False,
    )
    gateway = build(settings, Secrets(()), extras)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop(1)


async def test_one_channel_that_is_down_does_not_make_the_gateway_unready(tmp_path: Path) -> None:
    channel = MemoryChannel()
    async with _running(tmp_path, channel, _Poster(refused=True)) as gateway:
        await _until_down(gateway, "telegram")
        assert gateway.ready
        assert gateway.channel_lines() == (
            "console:local up",
            "telegram:main down (channels.telegram.token: refused; make a new one (tried again every 300 s))",
        )
        accepted = await channel.say("hi")
        assert (await channel.reply(accepted.message_id)).text == "You said: hi"


async def test_a_gateway_whose_only_channel_is_down_is_not_ready(tmp_path: Path) -> None:
    async with _running(tmp_path, _Poster(refused=True)) as gateway:
        await _until_down(gateway, "telegram")
        assert not gateway.ready


async def test_the_channels_stay_connected_until_the_running_turns_are_answered(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("done",), gate=gate)])
    posts = MemoryPosts()
    rules = {(posts.name, posts.account): AccessRule.of(mode="open")}
    async with _running(tmp_path, posts, llm=llm, rules=rules) as gateway:
        await posts.receive("hi", native_id="1")
        while not llm.requests:  # noqa: ASYNC110 - the scripted model has no event
            await asyncio.sleep(0)
        async with asyncio.TaskGroup() as group:
            stopping = group.create_task(gateway.stop(10))
            await asyncio.sleep(0)
            with pytest.raises(StorageError, match="shutting down"):
                await posts.receive("too late", native_id="2")
            gate.set()
        assert stopping.result() is True
        assert posts.texts() == ["done"]
        assert posts.health().state == "down"


def _given(channel: Channel) -> Callable[[Timeline], Channel]:
    return lambda _timeline: channel


async def _until_down(gateway: Gateway, channel: str) -> None:
    while {one.channel: one.state for one in gateway.channel_statuses()}[channel] != "down":
        await SystemClock().sleep(0)
