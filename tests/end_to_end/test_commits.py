"""How often a turn waits for the disk: its acceptance, its commit and its receipt, and no more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from gateway.channels.timeline import StoreTimeline
from gateway.storage.ports import InboxEntry, Lease
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import SystemClock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.timeline import TimelineEntry
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import MemoryChannel
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts


class _CountingStore(SqliteStore):
    """Counts the reads of the inbox, and says when a reply is recorded as sent."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "parlour.sqlite3", synchronous="NORMAL")
        self.reads = 0
        self.sent = asyncio.Queue[int]()

    async def next_entry(self, thread: str) -> InboxEntry | None:
        self.reads += 1
        return await super().next_entry(thread)

    async def mark_sent(
        self, lease: Lease, row_id: int, receipt: str, at: float, *, forget: bool = False
    ) -> None:
        await super().mark_sent(lease, row_id, receipt, at, forget=forget)
        self.sent.put_nowait(row_id)


@pytest.mark.parametrize("resolution", ["nonce", "lookup", "none"])
async def test_a_turn_of_a_posting_channel_commits_three_times(
    tmp_path: Path, resolution: Literal["nonce", "lookup", "none"]
) -> None:
    store, posts = _CountingStore(tmp_path), MemoryPosts(resolution=resolution)
    async with open_gateway(tmp_path, store=store, posts=posts):
        await posts.receive("hello", native_id="1")
        await store.sent.get()
        commits, reads = store.commits, store.reads
        await posts.receive("again", native_id="2")
        await store.sent.get()
        assert posts.texts() == ["You said: hello", "You said: again"]
        assert store.commits - commits == 3
        assert store.reads == reads


async def test_a_turn_of_a_showing_channel_commits_three_times(tmp_path: Path) -> None:
    store = _CountingStore(tmp_path)
    async with open_gateway(tmp_path, store=store, channel=MemoryChannel()) as harness:
        await harness.channel.say("hello")
        await store.sent.get()
        commits, reads = store.commits, store.reads
        await harness.channel.say("again")
        await store.sent.get()
        assert store.commits - commits == 3
        assert store.reads == reads
        kinds = [record.kind for record in await harness.records()]
        assert kinds == ["session", *(["user", "step", "assistant"] * 2)]


async def test_the_person_sees_the_words_before_the_answer_and_their_number_with_it(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("ok",), gate=gate)])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await harness.channel.say("remember me")
        await harness.channel.until(lambda: llm.requests)
        waiting = await _entries(harness)
        gate.set()
        await harness.channel.until(lambda: harness.channel.sent)
        recorded = await _entries(harness)
    assert [(one.role, one.text, one.entry_id > 0) for one in waiting] == [("user", "remember me", False)]
    assert [(one.role, one.entry_id > 0) for one in recorded] == [("user", True), ("assistant", True)]


async def _entries(harness: GatewayHarness) -> tuple[TimelineEntry, ...]:
    timeline = StoreTimeline(harness.store, SystemClock())
    return await timeline.entries(ThreadKey.decode(THREAD), after=0, limit=10)


async def test_a_message_that_waits_for_a_slot_has_no_attempt_counted(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("one",), gate=gate), ScriptedAnswer.of("two")])
    async with open_gateway(tmp_path, "turn.max_running=1", llm=llm) as harness:
        await harness.channel.say("first")
        await harness.channel.until(lambda: llm.requests)
        second = await harness.channel.say("second", chat="c2")
        (running,) = await harness.store.open_entries(THREAD)
        (waiting,) = await harness.store.open_entries("console:local:c2")
        assert (running.attempts, waiting.attempts - waiting.excused) == (1, 0)
        gate.set()
        assert (await harness.channel.reply(second.message_id)).text == "two"
