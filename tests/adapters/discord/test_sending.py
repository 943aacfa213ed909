"""What the gateway sends is seen once, edited in place, and failures are understood."""

from __future__ import annotations

import asyncio

import pytest

from adapters.channel import PostingChannel
from adapters.discord.outbound import nonce_of
from adapters.discord.rest import NotConnected
from pipeline.domain.clock import ManualClock
from tests.adapters.discord.harness import Bot, bot_for, outgoing, question, thread
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import Fault, FaultKind, Place


def test_the_adapter_is_a_posting_channel(bot: Bot) -> None:
    assert isinstance(bot.adapter, PostingChannel)
    assert bot.adapter.capabilities.resolution == "nonce"
    assert "once" in bot.adapter.capabilities.guarantee


async def test_a_post_under_the_same_key_shows_once(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    async with bot.running():
        first = await bot.post(chat, "**hi**", key="m_1:0")
        again = await bot.post(chat, "**hi**", key="m_1:0")
        other = await bot.post(chat, "**hi**", key="m_1:1")

    assert first == again != other
    assert fake.bot_texts(chat) == ["hi", "hi"]


def test_a_nonce_fits_whatever_the_key() -> None:
    keys = ["m_0123456789abcdef0123:0", "k" * 60, ""]
    assert [len(nonce_of(key)) for key in keys] == [25, 25, 25]
    assert len({nonce_of(key) for key in keys}) == 3


@pytest.mark.parametrize("kind", ["error_after", "drop", "hang"])
async def test_an_unknown_outcome_and_a_second_post_show_one_message(
    fake: FakeDiscord, bot: Bot, kind: FaultKind
) -> None:
    chat = fake.private_chat(fake.person("ada"))
    fake.faults.script.append(Fault(method="create_message", kind=kind))
    async with bot.running():
        with pytest.raises(Exception) as lost:  # noqa: PT011 - its meaning is asked for below
            async with asyncio.timeout(1.0):
                await bot.post(chat, "once")
        failure = bot.adapter.classify(lost.value)
        await bot.post(chat, "once")

    assert (failure.kind, failure.maybe_delivered) == ("transient", True)
    assert fake.bot_texts(chat) == ["once"]


async def test_one_call_is_one_request_also_for_5xx(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    fake.faults.script.append(Fault(method="create_message", kind="error_before"))
    async with bot.running():
        with pytest.raises(Exception, match="500"):
            await bot.post(chat, "no")

    assert [call.status for call in fake.calls if call.method == "create_message"] == [500]


async def test_a_429_is_reported_at_once_with_its_wait(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    fake.faults.script.append(Fault(method="create_message", kind="rate_limit", retry_after_s=7.5))
    async with bot.running():
        with pytest.raises(Exception, match="wait") as limited:
            await bot.post(chat, "later")
        await bot.post(chat, "later")

    failure = bot.adapter.classify(limited.value)
    assert (failure.kind, failure.retry_after_s, failure.maybe_delivered) == ("rate_limit", 7.5, False)
    assert not failure.whole_account
    assert fake.bot_texts(chat) == ["later"]


async def test_refused_formatting_is_followed_by_plain_words_once(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    async with bot.running():
        fake.faults.script.append(Fault(method="create_message", kind="refuse_format"))
        receipt = await bot.post(chat, "**hi** there")
        fake.faults.script.append(Fault(method="edit_message", kind="refuse_format"))
        part = bot.adapter.render(outgoing("**ho** there"))[0]
        await bot.adapter.edit(thread(chat), receipt.native_id, part)

    assert [message.content for message in fake.world.of(chat.chat)] == ["ho there"]


async def test_what_is_gone_or_forbidden_is_classified(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    part = bot.adapter.render(outgoing("x"))[0]
    async with bot.running():
        theirs = await fake.say(chat, ada, "hello")
        kinds = []
        for native_id in ("1", theirs):
            with pytest.raises(Exception, match=r"404|403") as refused:
                await bot.adapter.edit(thread(chat), native_id, part)
            kinds.append(bot.adapter.classify(refused.value).kind)

    assert kinds == ["not_found", "permission"]


async def test_a_call_waits_for_the_login_and_no_longer(fake: FakeDiscord) -> None:
    clock = ManualClock()
    bot = bot_for(fake, clock=clock)
    chat = fake.private_chat(fake.person("ada"))
    async with asyncio.TaskGroup() as tasks:
        early = tasks.create_task(bot.post(chat, "early"))
        async with bot.running():
            await early
        late = tasks.create_task(_outcome(bot, chat))
        await clock.advance(4.0)
        assert not late.done()
        await clock.advance(2.0)

    assert fake.bot_texts(chat) == ["early"]
    failure = bot.adapter.classify(late.result())
    assert (failure.kind, failure.maybe_delivered) == ("transient", False)


async def _outcome(bot: Bot, chat: Place) -> NotConnected:
    with pytest.raises(NotConnected) as absent:
        await bot.post(chat, "late", key="m_1:1")
    return absent.value


async def test_a_preview_is_one_message_that_grows_and_becomes_the_answer(
    fake: FakeDiscord, bot: Bot
) -> None:
    chat = fake.private_chat(fake.person("ada"))
    async with bot.running():
        view = bot.adapter.open_view(thread(chat), key="m_1:0", reply_handle="", native_id="")
        assert view is not None
        await view.show(outgoing("Hel", unfinished=True))
        assert [shown.buttons for shown in fake.visible(chat)] == [("Stop",)]
        await view.show(outgoing("Hello wor", unfinished=True))
        await view.show(outgoing("Hello wor", unfinished=True))
        await view.close()
        final = bot.adapter.render(outgoing("Hello world"))[0]
        await bot.adapter.edit(thread(chat), view.native_id, final)
        await bot.adapter.edit(thread(chat), view.native_id, final)

    (shown,) = fake.visible(chat)
    assert (shown.text, shown.buttons, shown.native_id) == ("Hello world", (), view.native_id)
    assert shown.edits == 3


async def test_an_answer_whose_preview_was_never_recorded_replaces_it(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    async with bot.running():
        view = bot.adapter.open_view(thread(chat), key="m_1:0", reply_handle="", native_id="")
        assert view is not None
        await view.show(outgoing("Hel", unfinished=True))
        receipt = await bot.post(chat, "Hello world", key="m_1:0")

    (shown,) = fake.visible(chat)
    assert (shown.native_id, shown.text, shown.buttons) == (receipt.native_id, "Hello world", ())


async def test_a_long_preview_shows_its_end(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    async with bot.running():
        view = bot.adapter.open_view(thread(chat), key="m_1:0", reply_handle="", native_id="")
        assert view is not None
        await view.show(outgoing("word " * 2000 + "the end", unfinished=True))

    (shown,) = fake.visible(chat)
    assert shown.text.endswith("the end")
    assert shown.buttons == ("Stop",)
    assert shown.file_name == ""


async def test_an_answer_of_too_many_parts_is_its_beginning_and_a_file(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    text = "\n\n".join(f"paragraph {number} " + "word " * 100 for number in range(60))
    async with bot.running():
        parts = bot.adapter.render(outgoing(text))
        for index, part in enumerate(parts):
            await bot.adapter.post(thread(chat), part, key=f"m_1:{index}")
            await bot.adapter.post(thread(chat), part, key=f"m_1:{index}")

    first, second = fake.visible(chat)
    assert first.text.startswith("paragraph 0")
    assert second.file_name == "answer.md"
    assert fake.world.of(chat.chat)[1].files[0].content == text.encode()


async def test_a_post_is_found_again_after_the_nonce_is_forgotten(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    since = fake.world.clock.now()
    async with bot.running():
        await fake.say(chat, ada, "the answer")
        receipt = await bot.post(chat, "the **answer**")
        part = bot.adapter.render(outgoing("the **answer**"))[0]
        other = bot.adapter.render(outgoing("another answer"))[0]
        found = await bot.adapter.find(thread(chat), part, key="m_1:0", since=since)
        nothing = await bot.adapter.find(thread(chat), other, key="m_1:0", since=since)
        too_old = await bot.adapter.find(thread(chat), part, key="m_1:0", since=since + 3600)

    assert found == receipt
    assert nothing is None
    assert too_old is None


async def test_an_answer_in_a_room_points_at_the_question(fake: FakeDiscord, bot: Bot) -> None:
    ada = fake.person("ada")
    room = fake.room("general", ada)
    async with bot.running():
        asked = await fake.say(room, ada, "hi")
        await fake.until(lambda: bool(bot.inbox.items))
        handle = bot.inbox.items[0].reply_handle  # type: ignore[union-attr]  # it is a message
        part = bot.adapter.render(outgoing("hello"))[0]
        await bot.adapter.post(thread(room), part, key="m_1:0", reply_handle=handle)
        await bot.adapter.post(thread(room), part, key="m_1:1", reply_handle="1")

    assert [shown.reply_to for shown in fake.visible(room) if not shown.author] == [asked, ""]


async def test_nothing_sent_pings_anybody_or_looks_links_up(fake: FakeDiscord, bot: Bot) -> None:
    fake.lenient = True
    ada = fake.person("ada")
    room = fake.room("general", ada)
    async with bot.running():
        for number, text in enumerate(
            ["@everyone", "@here <@123456789012345678>", f"<@{ada.id}> hi", "https://evil.example/?d=1"]
        ):
            await bot.post(room, text, key=f"m:{number}")
        receipt = await bot.post(room, "last", key="m:last")
        await bot.adapter.edit(thread(room), receipt.native_id, bot.adapter.render(outgoing("@everyone"))[0])

    assert fake.rest.mass_mentions == []
    assert fake.rest.pings == []
    assert fake.rest.embedding == []


async def test_any_text_is_taken_by_the_platforms_rules(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    fake.lenient = True
    odd = [
        "",
        " ",
        "\n",
        "\u200b",
        "#",
        "```",
        "```py\n" + "x\n" * 3000,
        "😀" * 2001,
        "\ud800",
        "a" * 9000,
        "> " * 500,
    ]
    questions = tuple(
        question(f"int_{one}", *(f"option {two} " * 20 for two in range(7))) for one in range(9)
    )
    async with bot.running():
        for number, text in enumerate(odd):
            for index, part in enumerate(bot.adapter.render(outgoing(text, questions=questions, heard=text))):
                await bot.adapter.post(thread(chat), part, key=f"m_{number}:{index}")

    assert {call.status for call in fake.calls if call.method == "create_message"} == {200}


async def test_typing_is_shown(fake: FakeDiscord, bot: Bot) -> None:
    chat = fake.private_chat(fake.person("ada"))
    async with bot.running():
        await bot.adapter.typing(thread(chat))

    assert fake.rest.typing == [chat.chat]
