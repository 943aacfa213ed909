"""Buttons and slash commands: accepted, refused, late; always answered in time and once."""

from __future__ import annotations

import asyncio

import pytest

from pipeline.domain.commands import COMMAND_NAMES
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import ApprovalReply, SessionCommand, button_handle
from tests.adapters.discord.harness import Bot, outgoing, question, thread
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Fault, Place


async def ask(bot: Bot, place: Place) -> str:
    """A question with the buttons Allow and Deny; its message's id."""
    part = bot.adapter.render(outgoing("Run `ls`?", questions=(question("int_1", "Allow", "Deny"),)))[-1]
    return (await bot.adapter.post(thread(place), part, key="m_1:0")).native_id


async def test_an_accepted_press_shows_the_choice_and_takes_the_buttons_away(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada = fake.person("ada")
    room = fake.room("general", ada)
    async with bot.running():
        native_id = await ask(bot, room)
        words = await fake.press(room, ada, native_id, "Deny")

    (reply,) = bot.inbox.items
    assert isinstance(reply, ApprovalReply)
    assert (reply.interaction_id, reply.option, reply.choice) == (button_handle("int_1"), 1, "")
    assert (reply.author.id, reply.thread, reply.private) == (ada.id, thread(room), False)
    assert words == ""
    (shown,) = fake.visible(room)
    assert shown.buttons == ()
    assert shown.text == "Run ls?\n→ Deny"
    assert fake.rest.embedding == []


async def test_the_other_questions_of_a_message_keep_their_buttons(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    questions = (question("int_1", "Allow", "Deny"), question("int_2", "Yes", "No"))
    async with bot.running():
        part = bot.adapter.render(outgoing("May I?", questions=questions))[-1]
        native_id = (await bot.adapter.post(thread(chat), part, key="m_1:0")).native_id
        first, *_, last = fake.visible(chat)[0].buttons
        await fake.press(chat, ada, native_id, first)
        assert fake.visible(chat)[0].buttons[-1] == last
        assert len(fake.visible(chat)[0].buttons) == 2
        bot.inbox.refuse, bot.inbox.over = "This question is no longer open.", True
        await fake.press(chat, ada, native_id, last)
    assert fake.visible(chat)[0].buttons == ()


async def test_a_refused_press_tells_the_presser_alone_and_leaves_the_buttons(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada, eve = fake.person("ada"), fake.person("eve")
    room = fake.room("general", ada, eve)
    bot.inbox.refuse = "This question is for somebody else."
    async with bot.running():
        native_id = await ask(bot, room)
        words = await fake.press(room, eve, native_id, "Allow")

    assert words == "This question is for somebody else."
    assert fake.visible(room)[0].buttons == ("Allow", "Deny")
    assert fake.interactions.public == []


@pytest.mark.parametrize(
    "reason", ["This question is no longer open.", "This question has already been answered."]
)
async def test_a_press_on_a_closed_question_takes_the_buttons_away(
    fake: FakeDiscord, bot: Bot, reason: str
) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    bot.inbox.refuse, bot.inbox.over = reason, True
    async with bot.running():
        native_id = await ask(bot, chat)
        await fake.press(chat, ada, native_id, "Allow")
        await fake.until(lambda: [call.method for call in fake.calls][-1] == "followup")

    assert fake.visible(chat)[0].buttons == ()
    assert str(fake.calls[-1].payload["content"]) == reason
    assert fake.calls[-1].payload["flags"] == 64 | 4


async def test_stop_under_a_preview_is_a_command(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with bot.running():
        view = bot.adapter.open_view(thread(chat), key="m_1:0", reply_handle="", native_id="")
        assert view is not None
        await view.show(outgoing("Once upon", unfinished=True))
        words = await fake.press(chat, ada, view.native_id, "Stop")

    (command,) = bot.inbox.items
    assert isinstance(command, SessionCommand)
    assert command.name == "stop"
    assert words == ""
    assert (fake.visible(chat)[0].text, fake.visible(chat)[0].buttons) == ("Once upon", ())


@pytest.mark.parametrize("name", COMMAND_NAMES)
async def test_slash_commands_are_registered_and_answered_to_the_caller_alone(
    fake: FakeDiscord, bot: Bot, name: str
) -> None:
    ada = fake.person("ada")
    room = fake.room("general", ada)
    async with bot.running():
        await fake.until(lambda: bool(fake.rest.commands))
        words = await fake.command(room, ada, name)

    (command,) = bot.inbox.items
    assert isinstance(command, SessionCommand)
    assert (command.name, command.private) == (name, False)
    assert words
    assert fake.interactions.public == []


async def test_a_slow_inbox_is_waited_for_behind_an_answer_that_is_in_time(
    fake: FakeDiscord, bot: Bot
) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    bot.inbox.gate = asyncio.Event()
    async with bot.running(), asyncio.TaskGroup() as tasks:
        native_id = await ask(bot, chat)
        press = tasks.create_task(fake.press(chat, ada, native_id, "Allow"))
        await fake.until(lambda: bool(fake.interactions.delays))
        command = tasks.create_task(fake.command(chat, ada, "stop"))
        await fake.until(lambda: len(fake.interactions.delays) == 2)
        assert fake.visible(chat)[0].buttons == ("Allow", "Deny")
        bot.inbox.gate.set()
        words = await press, await command

    assert words == ("", "Stopping.")
    assert max(fake.interactions.delays) < 3.0
    assert fake.visible(chat)[0].text == "Run ls?\n→ Allow"


async def test_a_press_that_the_inbox_could_not_take_asks_to_try_again(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    bot.inbox.failures = [StorageError("disk full")]
    async with bot.running():
        native_id = await ask(bot, chat)
        words = await fake.press(chat, ada, native_id, "Allow")
        again = await fake.press(chat, ada, native_id, "Allow")

    assert "try again" in words
    assert again == ""
    assert len(bot.inbox.items) == 1


@pytest.mark.parametrize("custom_id", ["q:xyz:0", "q:0123456789abcdef:-1", "other", "stop "])
async def test_a_button_of_no_one_is_answered_and_does_nothing(
    fake: FakeDiscord, bot: Bot, custom_id: str
) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with bot.running():
        native_id = await ask(bot, chat)
        words = await fake.press_id(chat, ada, native_id, custom_id)

    assert words == "This button no longer does anything."
    assert bot.inbox.items == []


async def test_a_failing_answer_does_not_end_the_channel(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    fake.faults.script.append(Fault(method="interaction_callback", kind="error_before"))
    async with bot.running():
        native_id = await ask(bot, chat)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fake.press(chat, ada, native_id, "Allow"))
            await fake.until(lambda: bool(bot.inbox.items))
            await fake.say(chat, ada, "still there?")
            await fake.until(lambda: len(bot.inbox.items) == 2)

    assert bot.inbox.texts() == ["still there?"]


async def test_commands_that_cannot_be_registered_do_not_stop_the_bot(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    fake.faults.script.append(Fault(method="put_commands", kind="error_before"))
    async with bot.running():
        await fake.until(lambda: any(call.method == "put_commands" for call in fake.calls))
        await fake.say(fake.private_chat(ada), ada, "hello")
        await fake.until(lambda: bool(bot.inbox.items))

    assert fake.rest.commands == []
