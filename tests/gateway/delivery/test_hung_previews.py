"""A preview's call that hangs does not hold up the answer, and its message is not left behind."""

from __future__ import annotations

import asyncio

from gateway.delivery.chat_queue import PATIENCE_S
from tests.gateway.delivery_harness import open_delivery, tokens
from tests.support.posting_channel import MemoryPosts, Refused


class SilentPosts(MemoryPosts):
    """Carries out calls and, while `silent`, never answers them."""

    silent = False

    async def _answer(self, refused: Refused | None) -> None:
        await super()._answer(refused)
        if self.silent:
            await asyncio.Event().wait()


async def test_an_answer_does_not_wait_for_a_preview_that_hangs() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        out.channel.gate = asyncio.Event()
        await out.begin("The ans")
        assert out.channel.calls == ["post The ans"]
        out.channel.gate = None
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(PATIENCE_S - 0.1)
        assert out.channel.texts() == []
        await out.clock.advance(0.2)
        assert out.channel.texts() == ["The answer"]
        await out.clock.advance(4_000)
        assert (out.channel.texts(), (await out.row()).state) == (["The answer"], "sent")


async def test_a_hung_preview_that_was_posted_becomes_the_answer() -> None:
    async with open_delivery(SilentPosts(resolution="lookup")) as out:
        assert isinstance(out.channel, SilentPosts)
        out.channel.silent = True
        await out.begin("The ans")
        out.channel.silent = False
        assert out.channel.texts() == ["The ans"]
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(3)
        assert out.channel.texts() == ["The answer"]


async def test_an_edit_that_was_cut_short_does_not_stay_above_the_answer() -> None:
    async with open_delivery(SilentPosts(resolution="nonce")) as out:
        assert isinstance(out.channel, SilentPosts)
        sender = await out.begin("The ")
        out.channel.silent = True
        await sender.send_event(tokens("The ", "ans")[1])
        await out.clock.advance(2)
        assert out.channel.texts() == ["The ans"]
        out.channel.silent = False
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(2)
        assert out.channel.texts() == ["The answer"]
        # The platform carries the edit out after the answer's.
        out.channel.messages[0].text = "The ans"
        await out.clock.advance(6)
        assert out.channel.texts() == ["The answer"]
        assert out.channel.calls.count("edit The answer") == 2


async def test_a_preview_that_answers_in_time_is_not_cut_short() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        gate = out.channel.gate = asyncio.Event()
        await out.begin("The ans")
        out.channel.gate = None
        reply = await out.reply("The answer")
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(PATIENCE_S / 2)
        gate.set()
        await out.clock.advance(60)
        assert out.channel.calls == ["post The ans", "edit The answer"]
