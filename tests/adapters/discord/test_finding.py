"""Looking for a post of an earlier process, before the gateway has said who the bot is."""

from __future__ import annotations

import asyncio

from tests.adapters.discord.harness import bot_for, outgoing, thread
from tests.support.platforms.discord import FakeDiscord


async def test_a_post_is_found_by_a_process_that_has_only_just_logged_in(fake: FakeDiscord) -> None:
    chat = fake.private_chat(fake.person("ada"))
    since = fake.world.clock.now()
    before = bot_for(fake)
    async with before.running():
        receipt = await before.post(chat, "the answer")

    after = bot_for(fake)
    part = after.adapter.render(outgoing("the answer"))[0]
    async with asyncio.TaskGroup() as tasks:
        finding = tasks.create_task(after.adapter.find(thread(chat), part, key="m_1:0", since=since))
        async with after.running():
            assert await finding == receipt
