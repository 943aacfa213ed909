"""What the bot missed while it was away and Discord can still tell: edits, and firsts of those listed."""

from __future__ import annotations

from pipeline.domain.messages import InboundMessage
from tests.adapters.discord.harness import Bot, bot_for
from tests.support.platforms.discord import FakeDiscord


async def test_the_first_message_of_a_listed_person_is_found_though_the_bot_was_away(
    fake: FakeDiscord,
) -> None:
    ada, eve = fake.person("ada"), fake.person("eve")
    bot = bot_for(fake, people=(ada.id, "5"))
    await fake.say(fake.private_chat(ada), ada, "anybody there?")
    await fake.say(fake.private_chat(eve), eve, "and I?")
    async with bot.running():
        await fake.until(lambda: bool(bot.inbox.items))
        await fake.say(fake.private_chat(ada), ada, "ah")
        await fake.until(lambda: len(bot.inbox.items) == 2)
    assert bot.inbox.texts() == ["anybody there?", "ah"], "eve is on no list, and no one tells of her chat"


async def test_a_listed_room_is_read_from_where_the_bot_was_last_heard(fake: FakeDiscord) -> None:
    ada = fake.person("ada")
    chat, room = fake.private_chat(ada), fake.room("general", ada)
    bot = bot_for(fake, rooms=(room.chat,))
    await fake.say(room, ada, "before anything was heard")
    async with bot.running():
        await fake.say(chat, ada, "one")
        await fake.until(lambda: bool(bot.inbox.items))
    await fake.say(room, ada, "uno")
    async with bot.running():
        await fake.until(lambda: len(bot.inbox.items) == 2)
    assert bot.inbox.texts() == ["one", "uno"]


async def test_an_edit_that_was_made_while_the_bot_was_down_is_fetched_once(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with bot.running():
        first = await fake.say(chat, ada, "six times seven")
        await fake.say(chat, ada, "hello")
        await fake.until(lambda: len(bot.inbox.items) == 2)
    await fake.rewrite(chat, first, "six times nine")
    for words in ("again", "and again"):
        async with bot.running():
            await fake.say(chat, ada, words)
            await fake.until(lambda: bot.inbox.texts()[-1] == words)  # noqa: B023 - used at once
    assert bot.inbox.texts() == ["six times seven", "hello", "six times nine", "again", "and again"]
    assert [item.edited for item in bot.inbox.items if isinstance(item, InboundMessage)][2]
