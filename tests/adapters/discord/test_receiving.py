"""What people write arrives: in order, once, also after the connection broke or the inbox failed."""

from __future__ import annotations

import asyncio
import threading

import pytest

from adapters.discord.rest import ServerFailed
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError, InvalidInput, StorageError
from pipeline.domain.messages import InboundMessage, SessionCommand
from tests.adapters.discord.harness import Bot, bot_for, thread
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Fault


async def test_a_direct_message_and_a_mention_in_a_room_arrive(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat, room = fake.private_chat(ada), fake.room("general", ada)
    async with bot.running():
        direct = await fake.say(chat, ada, "hello")
        await fake.say(room, ada, "and you")
        await fake.say(room, ada, "not you", addressed=False)
        await fake.until(lambda: len(bot.inbox.items) == 3)

    first, second, third = sorted(bot.inbox.items, key=lambda item: int(item.native_id))
    assert isinstance(first, InboundMessage)
    assert isinstance(second, InboundMessage)
    assert isinstance(third, InboundMessage)
    assert (first.native_id, first.text, first.private, first.author.name) == (direct, "hello", True, "ada")
    assert (second.text, second.private, second.addressed) == ("and you", False, True)
    assert (third.text, third.addressed) == ("not you", False)
    assert first.thread == thread(chat)
    assert second.thread == thread(room)


async def test_the_role_of_the_bots_name_is_a_mention_too(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    room = fake.room("general", ada)
    async with bot.running():
        await fake.say(room, ada, f"<@&{fake.world.bot_role}> hello", addressed=False)
        await fake.until(lambda: bool(bot.inbox.items))

    (item,) = bot.inbox.items
    assert isinstance(item, InboundMessage)
    assert (item.text, item.addressed) == ("hello", True)


async def test_a_server_that_discord_py_cannot_read_keeps_no_one_from_being_heard(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada = fake.person("ada")
    room = fake.room("general", ada)
    # As Discord sends it now and then: a thread without its counts.
    fake.world.guild_extra = {"threads": [{"id": "7", "type": 11, "name": "x", "parent_id": room.chat}]}
    async with bot.running():
        await fake.say(room, ada, "hello")
        await fake.until(lambda: bool(bot.inbox.items))

    assert bot.inbox.texts() == ["hello"]


async def test_own_messages_other_bots_and_webhooks_are_not_heard(fake: FakeDiscord, bot: Bot) -> None:
    ada, robot = fake.person("ada"), fake.person("robot", bot=True)
    room = fake.room("general", ada)
    async with bot.running():
        await bot.post(room, "mine")
        await fake.say(room, robot, "beep")
        await fake.send(room, ada, "hooked", webhook=fake.world.snowflake())
        await fake.say(room, ada, "last")
        await fake.until(lambda: bool(bot.inbox.items))

    assert bot.inbox.texts() == ["last"]


async def test_one_chat_is_handed_over_in_order_and_one_at_a_time_while_others_continue(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada, bob = fake.person("ada"), fake.person("bob")
    chat, other = fake.private_chat(ada), fake.private_chat(bob)
    bot.inbox.gate = asyncio.Event()
    async with bot.running():
        for number in range(20):
            await fake.say(chat, ada, str(number))
        await fake.say(other, bob, "me too")
        await fake.until(lambda: sum(bot.inbox.busy.values()) == 2)
        bot.inbox.gate.set()
        await fake.until(lambda: len(bot.inbox.items) == 21)

    mine = [
        item.text
        for item in bot.inbox.items
        if isinstance(item, InboundMessage) and item.thread == thread(chat)
    ]
    assert mine == [str(number) for number in range(20)]
    assert bot.inbox.most_busy == {chat.chat: 1, other.chat: 1}


async def test_an_item_that_the_inbox_could_not_take_is_offered_again_before_the_next(
    fake: FakeDiscord,
) -> None:
    clock = ManualClock()
    bot = bot_for(fake, clock=clock)
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    bot.inbox.failures = [StorageError("disk full"), StorageError("disk full")]
    async with bot.running():
        await fake.say(chat, ada, "one")
        await fake.say(chat, ada, "two")
        await fake.until(lambda: len(bot.inbox.failures) == 1)
        assert bot.inbox.items == []
        while not bot.inbox.items:
            await clock.advance(1.0)
        await fake.until(lambda: len(bot.inbox.items) == 2)

    assert bot.inbox.texts() == ["one", "two"]


async def test_an_item_that_is_refused_for_good_does_not_stop_its_chat(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    bot.inbox.failures = [InvalidInput("odd")]
    async with bot.running():
        await fake.say(chat, ada, "odd")
        await fake.say(chat, ada, "fine")
        await fake.until(lambda: bool(bot.inbox.items))

    assert bot.inbox.texts() == ["fine"]


async def test_a_dropped_socket_is_resumed_without_gap_or_double(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with bot.running():
        await fake.say(chat, ada, "before")
        await fake.until(lambda: bot.inbox.texts() == ["before"])
        fake.gateway.drop_sockets()
        await fake.say(chat, ada, "during")
        await fake.until(lambda: fake.gateway.resumes == 1)
        await fake.say(chat, ada, "after")
        await fake.until(lambda: len(bot.inbox.items) == 3)

    assert bot.inbox.texts() == ["before", "during", "after"]
    assert bot.inbox.offered == 3
    assert fake.gateway.identifies == 1
    assert not [call for call in fake.calls if call.method == "get_messages"]


async def test_a_gateway_that_answers_5xx_for_a_while_is_resumed_all_the_same(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with bot.running():
        fake.gateway.refuse_connections = True
        fake.gateway.drop_sockets()
        # Nothing is known of this chat: only the resumed session can bring its first words.
        await fake.say(chat, ada, "during")
        await fake.until(lambda: fake.gateway.refused > 0)
        fake.gateway.refuse_connections = False
        await fake.until(lambda: bool(bot.inbox.items))

    assert bot.inbox.texts() == ["during"]
    assert fake.gateway.identifies == 1


async def test_a_connection_that_stays_broken_ends_the_run_so_that_a_new_one_begins_at_once(
    fake: FakeDiscord,
) -> None:
    clock = ManualClock()
    bot = bot_for(fake, clock=clock)

    async def run() -> None:
        with pytest.raises(ConnectionError, match="did not come back"):
            await bot.adapter.run(bot.inbox)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(run())
        await fake.until(lambda: bot.adapter.health().state == "up")
        fake.gateway.refuse_connections = True
        fake.gateway.drop_sockets()
        await fake.until(lambda: fake.gateway.refused > 0)
        await clock.advance(15)
        assert not running.done(), "for a while it may resume"
        await clock.advance(10)


async def test_after_an_invalid_session_the_missed_messages_are_fetched_in_order_and_once(
    fake: FakeDiscord,
) -> None:
    clock = ManualClock(start=fake.world.clock.now())
    bot = bot_for(fake, clock=clock)
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with bot.running():
        await fake.say(chat, ada, "before")
        await fake.until(lambda: bot.inbox.texts() == ["before"])
        fake.gateway.forget_sessions()
        fake.gateway.drop_sockets()
        for number in range(150):
            await fake.say(chat, ada, str(number))
        while fake.gateway.identifies < 2:
            await clock.advance(1.0)
        await fake.say(chat, ada, "after")
        await fake.until(lambda: "after" in bot.inbox.texts())

    assert bot.inbox.texts() == ["before", *map(str, range(150)), "after"]


async def test_what_was_written_while_the_bot_was_down_is_fetched_at_the_next_start(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada = fake.person("ada")
    chat, room = fake.private_chat(ada), fake.room("general", ada)
    async with bot.running():
        await fake.say(chat, ada, "one")
        await fake.say(room, ada, "uno")
        await fake.until(lambda: len(bot.inbox.items) == 2)
    await fake.say(chat, ada, "two")
    await fake.say(room, ada, "due")
    async with bot.running():
        await fake.until(lambda: len(bot.inbox.items) == 4)

    assert sorted(bot.inbox.texts()) == ["due", "one", "two", "uno"]
    due = next(item for item in bot.inbox.items if isinstance(item, InboundMessage) and item.text == "due")
    assert (due.private, due.addressed) == (False, True)
    assert fake.gateway.most_sockets == 1


async def test_more_than_a_queue_holds_is_fetched_when_the_inbox_works_again(
    fake: FakeDiscord, bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    bot.inbox.gate = asyncio.Event()
    async with bot.running():
        for number in range(450):
            await fake.say(chat, ada, str(number))
        await fake.until(lambda: bot.inbox.busy.get(chat.chat) == 1)
        await fake.until(lambda: "fetching them later" in caplog.text)
        bot.inbox.gate.set()
        await fake.until(lambda: len(bot.inbox.items) == 450)

    assert bot.inbox.texts() == [str(number) for number in range(450)]


async def test_what_was_heard_and_not_accepted_is_fetched_by_the_next_run_of_the_adapter(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    bot.inbox.gate = asyncio.Event()
    async with bot.running():
        # The very first words of a chat that nothing is known of.
        await fake.say(chat, ada, "first")
        await fake.until(lambda: bot.inbox.busy.get(chat.chat) == 1)
    bot.inbox.gate = None
    # A run that does not get as far as a session forgets nothing either.
    fake.faults.script.append(Fault(method="me", kind="error_before"))
    with pytest.raises(ServerFailed):
        await bot.adapter.run(bot.inbox)
    async with bot.running():
        await fake.until(lambda: bool(bot.inbox.items))

    assert bot.inbox.texts() == ["first"]


async def test_a_chat_that_cannot_be_read_back_continues_with_new_ones(fake: FakeDiscord, bot: Bot) -> None:
    ada, bob = fake.person("ada"), fake.person("bob")
    chat = fake.private_chat(ada)
    gone = thread(fake.private_chat(bob))
    del fake.world.channels[gone.chat]
    bot.timeline.seen = {thread(chat): "1", gone: "1"}
    fake.faults.script.append(Fault(method="get_channel", kind="refuse_format"))
    async with bot.running():
        await fake.until(lambda: len([one for one in fake.calls if one.method == "get_channel"]) == 2)
        await fake.say(chat, ada, "new")
        await fake.until(lambda: bool(bot.inbox.items))

    assert bot.inbox.texts() == ["new"]


async def test_edits_are_asked_again_and_link_previews_are_not(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with bot.running():
        native_id = await fake.say(chat, ada, "helo https://example.org")
        await fake.unfurl(chat, native_id)
        await fake.rewrite(chat, native_id, "hello https://example.org")
        await fake.unfurl(chat, native_id)
        await fake.say(chat, ada, "next")
        await fake.until(lambda: "next" in bot.inbox.texts())

    assert bot.inbox.texts() == ["helo https://example.org", "hello https://example.org", "next"]
    edit = bot.inbox.items[1]
    assert isinstance(edit, InboundMessage)
    assert edit.edited
    assert edit.native_id.startswith(f"{native_id}:e")


async def test_a_typed_command_is_a_command(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    async with bot.running():
        await fake.say(fake.private_chat(ada), ada, "/stop")
        await fake.until(lambda: bool(bot.inbox.items))

    assert isinstance(bot.inbox.items[0], SessionCommand)


async def test_a_refused_token_names_the_setting_and_shows_no_token(fake: FakeDiscord) -> None:
    bot = bot_for(fake, token="wrong-token-value")
    with pytest.raises(ConfigurationError, match=r"channels\.discord\.token") as refused:
        await bot.adapter.run(bot.inbox)

    assert "wrong-token-value" not in repr(refused.value)
    assert bot.adapter.health().state == "down"


async def test_a_token_that_only_the_gateway_refuses_is_a_configuration_error_too(
    fake: FakeDiscord, bot: Bot
) -> None:
    fake.gateway.token = "another"
    with pytest.raises(ConfigurationError, match=r"channels\.discord\.token"):
        await bot.adapter.run(bot.inbox)


async def test_a_missing_switch_in_the_portal_is_named(fake: FakeDiscord, bot: Bot) -> None:
    fake.gateway.content_intent_granted = False
    with pytest.raises(ConfigurationError, match="MESSAGE CONTENT INTENT"):
        await bot.adapter.run(bot.inbox)


async def test_health_is_measured_at_the_gateways_frames(fake: FakeDiscord, bot: Bot) -> None:
    fake.gateway.heartbeat_ms = 30
    assert bot.adapter.health().state == "down"
    async with bot.running():
        first = bot.adapter.health().received_at
        assert first is not None
        # Nothing but answered heartbeats.
        await fake.until(lambda: (bot.adapter.health().received_at or 0) > first)
        assert bot.adapter.health().state == "up"
    assert bot.adapter.health().state == "down"


async def test_a_cancelled_adapter_leaves_no_task_no_thread_and_no_socket(
    fake: FakeDiscord, bot: Bot
) -> None:
    before = asyncio.all_tasks()
    ada = fake.person("ada")
    bot.inbox.gate = asyncio.Event()
    async with bot.running():
        await fake.say(fake.private_chat(ada), ada, "hello")
        await fake.until(lambda: sum(bot.inbox.busy.values()) == 1)
    await fake.until(lambda: not fake.gateway.sockets)

    await fake.until(lambda: asyncio.all_tasks() <= before)
    await fake.until(lambda: not [one for one in threading.enumerate() if "keep-alive" in one.name])
    assert bot.inbox.items == []


async def test_a_cancellation_as_the_connection_opens_ends_the_run(fake: FakeDiscord, bot: Bot) -> None:
    # discord.py connects inside asyncio.wait_for, which on Python 3.11 swallows a cancellation that comes
    # when its work has just been done. Later Pythons have no such work for the task to wait for.
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(bot.adapter.run(bot.inbox))
        while not fake.gateway.identifies and not (connecting := _connecting()):  # noqa: ASYNC110 - no event tells that a task has begun
            await asyncio.sleep(0)
        if connecting:
            connecting[0].add_done_callback(lambda _: run.cancel())
        else:
            run.cancel()
        await fake.until(run.done)
    assert run.cancelled()
    assert bot.adapter.health().state == "down"


def _connecting() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if "DiscordWebSocket.from_client" in repr(task.get_coro())]
