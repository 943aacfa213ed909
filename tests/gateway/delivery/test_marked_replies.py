"""Replies whose row begins as being sent: the commit of the turn writes the mark that precedes the post."""

from __future__ import annotations

import pytest

from adapters.channel import Resolution
from gateway.delivery.poster import REPEAT_LABEL
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import InboxEntry, Lease
from pipeline.domain.messages import Author, InboundMessage
from tests.gateway.delivery_harness import DeliveryHarness, open_delivery, restarted
from tests.support.posting_channel import MemoryPosts, refusal


class _CountingStore(MemoryStore):
    """Counts the marks that precede a post."""

    marks = 0

    async def mark_sending(self, lease: Lease, row_id: int) -> None:
        self.marks += 1
        await super().mark_sending(lease, row_id)


def _entry(harness: DeliveryHarness, message_id: str = "m1") -> InboxEntry:
    return InboxEntry(
        seq=1,
        thread=harness.channel.thread().encode(),
        message_id=message_id,
        kind="message",
        body={},
        item=InboundMessage(
            message_id=message_id,
            native_id="1",
            thread=harness.channel.thread(),
            author=Author(id="ann"),
            received_at=0.0,
            text="hi",
        ),
        received_at=0.0,
        attempts=0,
        excused=0,
        cancelled=False,
    )


async def _enqueue(harness: DeliveryHarness) -> None:
    reply = await harness.reply("hi", state="sending")
    harness.delivery.enqueue(harness.row_id, reply, state="sending")


def _at_once(harness: DeliveryHarness) -> bool:
    state = harness.delivery.first_state(harness.channel.thread(), _entry(harness), plain=True)
    return state == "sending"


async def test_a_marked_reply_is_posted_without_another_mark() -> None:
    store = _CountingStore()
    async with open_delivery(store=store) as harness:
        await _enqueue(harness)
        await harness.clock.advance(1)
        row = await harness.row()
        assert (row.state, row.attempts, store.marks) == ("sent", 1, 0)
        assert harness.channel.texts() == ["hi"]


async def test_a_refused_post_takes_the_mark_back_and_the_next_one_makes_it_again() -> None:
    store, channel = _CountingStore(), MemoryPosts(resolution="none")
    async with open_delivery(channel, store) as harness:
        channel.failures.append(refusal("rate_limit", retry_after_s=30))
        await _enqueue(harness)
        await harness.clock.advance(1)
        assert (await harness.row()).state == "ready"
        await harness.clock.advance(60)
        row = await harness.row()
        assert (row.state, row.attempts, store.marks) == ("sent", 2, 1)
        assert channel.texts() == ["hi"]


async def test_a_delivery_that_is_cut_off_before_the_post_takes_the_mark_back() -> None:
    channel = MemoryPosts(resolution="none")
    async with open_delivery(channel) as harness:
        queue = harness.queues.queue_for(channel, channel.thread(), private=True)
        queue.limiter.back_off(refusal("rate_limit", retry_after_s=30).failure, default_s=30)
        await _enqueue(harness)
        await harness.clock.advance(1)
        new = await restarted(harness)
        assert (await new.row()).state == "ready"
        await new.delivery.recover()
        await new.clock.advance(60)
        assert channel.texts() == ["hi"]
        await new.supervisor.close()


@pytest.mark.parametrize(
    ("resolution", "shown"), [("lookup", ["hi"]), ("nonce", ["hi"]), ("none", [REPEAT_LABEL + "hi"])]
)
async def test_a_crash_between_commit_and_post_shows_the_reply_once(
    resolution: Resolution, shown: list[str]
) -> None:
    channel = MemoryPosts(resolution=resolution)
    async with open_delivery(channel) as harness:
        await harness.reply("hi", state="sending")
        new = await restarted(harness)
        await new.delivery.recover()
        await new.clock.advance(60)
        assert channel.texts() == shown
        assert (await new.row()).state == "sent"
        await new.supervisor.close()


async def test_only_a_reply_that_can_be_posted_now_begins_as_being_sent() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as harness:
        assert _at_once(harness)
        queue = harness.queues.queue_for(harness.channel, harness.channel.thread(), private=True)
        queue.limiter.back_off(refusal("rate_limit", retry_after_s=30).failure, default_s=30)
        assert not _at_once(harness)
        await harness.clock.advance(31)
        assert _at_once(harness)
        await harness.begin("It grows ")
        assert not _at_once(harness)
    async with open_delivery(MemoryPosts(resolution="placeholder")) as harness:
        assert not _at_once(harness)
