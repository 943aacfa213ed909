"""Replies that another process has committed for an account of this one."""

from __future__ import annotations

from tests.gateway.delivery_harness import open_delivery
from tests.support.posting_channel import MemoryPosts


async def test_a_reply_of_another_process_is_posted_once_however_often_it_is_read() -> None:
    channel = MemoryPosts()
    async with open_delivery(channel) as out:
        await out.reply("one")
        for _ in range(2):
            await out.delivery.take(await out.row())
        await out.clock.advance(5)
        assert channel.texts() == ["one"]
        assert (await out.row()).state == "sent"
