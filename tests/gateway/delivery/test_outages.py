"""After an outage: every waiting answer leaves within seconds, and none is given up for having waited."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from adapters.channel import Acceptance, OutboundReply
from gateway.delivery.outbox import WORN_OUT_S
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Inbound
from tests.gateway.delivery_harness import DeliveryHarness, open_delivery
from tests.support.posting_channel import MemoryPosts, Refused, refusal


class Away(MemoryPosts):
    """A platform that cannot be reached at times."""

    def __init__(self, *, done: bool = False) -> None:
        super().__init__(resolution="nonce")
        self.away = True
        self.judge = lambda _method: refusal("transient", done=done) if self.away else None


async def _enqueue(out: DeliveryHarness, text: str, *, chat: str) -> OutboundReply:
    """A reply to a separate chat, under way."""
    reply = await out.reply(text, message_id=f"m-{chat}")
    thread = ThreadKey(channel=out.channel.name, account=out.channel.account, chat=chat)
    reply = replace(reply, thread=thread)
    out.delivery.enqueue(out.row_id, reply)
    return reply


@pytest.mark.parametrize("away_s", [60, 100, 3_600])
async def test_an_answer_leaves_within_seconds_of_the_platforms_return(away_s: int) -> None:
    channel = Away()
    async with open_delivery(channel) as out:
        reply = await out.reply("one")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(away_s)
        channel.away = False
        await out.clock.advance(15)
        assert channel.texts() == ["one"]


async def test_the_first_call_that_works_wakes_every_waiting_chat() -> None:
    channel = Away()
    async with open_delivery(channel) as out:
        for number in range(40):
            await _enqueue(out, f"answer {number}", chat=f"c{number}")
        await out.clock.advance(120)
        before = len(channel.calls)
        await out.clock.advance(60)
        assert len(channel.calls) - before <= 61, "while nothing works, one attempt a second tells them all"
        channel.away = False
        await out.clock.advance(3)
        assert len(channel.messages) == 40


async def test_a_channel_that_comes_up_wakes_what_waits() -> None:
    channel = Away()
    async with open_delivery(channel) as out:
        reply = await out.reply("one")
        out.delivery.enqueue(out.row_id, reply)
        # 1, 2, 5, 10 and 15 seconds are between the attempts: the next one is at 48.
        await out.clock.advance(34)
        channel.away = False

        async def accept(item: Inbound) -> Acceptance:
            return Acceptance(status="accepted", message_id=item.message_id)

        async with asyncio.TaskGroup() as group:
            run = group.create_task(channel.run(accept))
            await out.clock.advance(2)
            assert channel.texts() == ["one"]
            run.cancel()


async def test_with_many_errors_that_pass_no_answer_waits_for_long_on_a_healthy_platform() -> None:
    channel = MemoryPosts(resolution="nonce")
    chance = random.Random(7)
    channel.judge = lambda _method: refusal("transient") if chance.random() < 0.3 else None
    async with open_delivery(channel) as out:
        for number in range(100):
            await _enqueue(out, f"answer {number}", chat=f"c{number}")
        await out.clock.advance(60)
        assert len(channel.messages) == 100


async def test_an_answer_that_alone_fails_waits_its_time_though_others_leave() -> None:
    channel = MemoryPosts(resolution="nonce")
    poison = "poison"

    def judge(_method: str) -> Refused | None:
        return refusal("transient", done=False) if channel.calls[-1].endswith(poison) else None

    channel.judge = judge
    async with open_delivery(channel) as out:
        await _enqueue(out, poison, chat="bad")
        for number in range(200):
            await _enqueue(out, f"answer {number}", chat=f"c{number}")
            await out.clock.advance(1)
        tries = sum(call.endswith(poison) for call in channel.calls)
        assert 10 <= tries <= 20


@pytest.mark.parametrize("done", [False, True])
async def test_an_outage_that_outlasts_the_attempts_of_other_failures_gives_no_answer_up(done: bool) -> None:
    channel = Away(done=done)
    async with open_delivery(channel) as out:
        reply = await out.reply("one")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(WORN_OUT_S + 600)
        assert (await out.row()).state != "failed"
        channel.away = False
        await out.clock.advance(15)
        assert channel.texts() == ["one"]


async def test_a_repeat_that_shows_is_not_made_for_hours_at_every_few_seconds() -> None:
    channel = MemoryPosts(resolution="none")
    channel.judge = lambda _method: refusal("transient", done=True)
    async with open_delivery(channel) as out:
        reply = await out.reply("one")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(WORN_OUT_S - 60)
        assert (await out.row()).state != "failed"
        await out.clock.advance(660)
        assert (await out.row()).state == "failed"
        assert len(channel.messages) <= 45
