"""The gateway's life with several channels: ready while one works; channels stay until all is sent."""

from __future__ import annotations

import asyncio
import os
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
from gateway.access.policy import AccessRule
from gateway.app.bootstrap import Extras, build
from gateway.app.lifecycle import Gateway
from gateway.config import Secrets, load
from gateway.storage.health import CHECK_EVERY_S, DAMAGE_CHECK_EVERY_S, QUIET_CHECKS, StoreHealth
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Accepted, NewEntry
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.errors import ConfigurationError, MediaUnavailable, StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.posting_channel import MemoryPosts
from voice.transcription.scripted_transcriber import ScriptedTranscriber


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
    store: MemoryStore | None = None,
) -> AsyncIterator[Gateway]:
    settings = load(None, {}, ["channels.web.enabled=false", f'data.dir="{folder}"'])
    extras = Extras(
        channels=tuple(_given(channel) for channel in channels),
        rules=rules or {},
        llm=llm or ScriptedLlm.echo(),
        transcriber=ScriptedTranscriber(),
        store=store or MemoryStore(),
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
            "telegram:main down (channels.telegram.token: refused; make a new one (tried again every 15 s))",
        )
        accepted = await channel.say("hi")
        assert (await channel.reply(accepted.message_id)).text == "You said: hi"


class _FullDisk(MemoryStore):
    """A store on a disk that may be full."""

    full = False

    async def accept(self, entry: NewEntry, *, limit: int | None = None, begin: bool = False) -> Accepted:
        await self.check_writable()
        return await super().accept(entry, limit=limit, begin=begin)

    async def check_writable(self) -> None:
        if self.full:
            raise StorageError("the disk is full")


async def test_a_gateway_that_refuses_every_message_is_not_ready_until_it_takes_one(tmp_path: Path) -> None:
    channel, store = MemoryChannel(), _FullDisk()
    async with _running(tmp_path, channel, store=store) as gateway:
        seen = [gateway.ready]
        store.full = True
        with pytest.raises(StorageError):
            await channel.say("hi")
        seen.append(gateway.ready)
        assert gateway.channel_lines()[0].startswith("store down (takes no writes")
        store.full = False
        await channel.say("hi again")
        seen.append(gateway.ready)
        assert seen == [True, False, True]
        assert gateway.channel_lines() == ("console:local up",)


async def test_a_disk_that_fills_up_or_has_room_again_is_noticed_without_messages() -> None:
    clock, store = ManualClock(), _FullDisk()
    health = StoreHealth(store, clock)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(health.watch())
        store.full = True
        seen = []
        for _ in range(QUIET_CHECKS):
            seen.append(health.writable)
            await clock.advance(CHECK_EVERY_S)
        assert seen == [True] * QUIET_CHECKS
        seen = [health.writable]
        store.full = False
        await clock.advance(CHECK_EVERY_S)
        assert [*seen, health.writable] == [False, True]
        watching.cancel()


class _DamagedPage(MemoryStore):
    """A store in which a look finds something."""

    found: tuple[str, ...] = ("Tree 5 page 7: btreeInitPage() returns error code 11",)

    async def find_damage(self) -> tuple[str, ...]:
        return self.found


async def test_a_gateway_with_a_damaged_store_answers_and_says_what_to_do(tmp_path: Path) -> None:
    channel = MemoryChannel()
    async with _running(tmp_path, channel, store=_DamagedPage()) as gateway:
        accepted = await channel.say("hi")
        assert (await channel.reply(accepted.message_id)).text == "You said: hi"
        assert gateway.ready
        assert gateway.channel_lines()[0] == (
            "store damaged: Tree 5 page 7: btreeInitPage() returns error code 11 "
            "(stop the gateway and restore a backup, see docs/guides/deploy.md)"
        )


async def test_damage_is_logged_once_and_looked_for_once_a_day(caplog: pytest.LogCaptureFixture) -> None:
    clock, store = ManualClock(), _DamagedPage()
    health = StoreHealth(store, clock)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(health.watch_for_damage())
        for _ in range(3):
            await clock.advance(DAMAGE_CHECK_EVERY_S)
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        store.found = ()
        await clock.advance(DAMAGE_CHECK_EVERY_S)
        assert health.damage == ()
        watching.cancel()


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


async def test_a_gateway_that_stops_leaves_no_reading_process(tmp_path: Path) -> None:
    async with _running(tmp_path, MemoryChannel()) as gateway:
        reader = gateway._parts.reading
        assert not reader.pids
        await reader.warm_up()
        (pid,) = reader.pids
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
