"""Replies of an account that another process has taken over: the new holder sends them, and only it."""

from __future__ import annotations

import pytest

from gateway.storage.leases import lease_key
from pipeline.domain.errors import FenceLost
from tests.gateway.delivery_harness import DeliveryHarness, open_delivery, restarted
from tests.support.posting_channel import MemoryPosts, refusal


async def _taken_over(harness: DeliveryHarness) -> None:
    key = lease_key(harness.channel.thread().account_key)
    await harness.store.break_leases()
    assert await harness.store.acquire_lease(key, "you", ttl_s=3000, now=harness.clock.now()) is not None


async def test_a_reply_of_a_lost_account_is_left_to_its_new_holder() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as harness:
        await harness.lease()
        reply = await harness.reply("hi")
        await _taken_over(harness)
        harness.delivery.enqueue(harness.row_id, reply)
        await harness.clock.advance(60)
        assert harness.channel.texts() == []
        assert ((await harness.row()).state, (await harness.row()).attempts) == ("ready", 0)

        follower = await restarted(harness)
        assert await follower.delivery.recover() == 1
        await follower.clock.advance(60)
        assert follower.channel.texts() == ["hi"]
        assert (await follower.row()).state == "sent"
        await follower.supervisor.close()


async def test_an_account_that_is_lost_between_two_attempts_is_not_written() -> None:
    channel = MemoryPosts(resolution="nonce")
    async with open_delivery(channel) as harness:
        reply = await harness.reply("hi")
        channel.failures.append(refusal("transient"))
        harness.delivery.enqueue(harness.row_id, reply)
        await harness.clock.advance(0.5)
        before = await harness.row()
        await _taken_over(harness)
        await harness.clock.advance(60)
        assert channel.texts() == []
        assert await harness.row() == before


async def test_a_lost_account_is_not_taken_again_before_the_next_start() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as harness:
        await harness.lease()
        await _taken_over(harness)
        first = await harness.reply("one", message_id="m1")
        harness.delivery.enqueue(harness.row_id, first)
        await harness.clock.advance(5)
        await harness.store.break_leases()
        second = await harness.reply("two", message_id="m2")
        harness.delivery.enqueue(harness.row_id, second)
        await harness.clock.advance(60)
        assert harness.channel.texts() == [], "the second would overtake the first"
        with pytest.raises(FenceLost, match="another process sends from this account"):
            await harness.lease()

        follower = await restarted(harness)
        await follower.delivery.recover()
        await follower.clock.advance(60)
        assert follower.channel.texts() == ["one", "two"]
        await follower.supervisor.close()
