"""The fake Telegram through the real SDK: what it delivers, what it refuses, how it misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, ReplyParameters
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter, TimedOut

from pipeline.domain.clock import Clock, ManualClock
from tests.support.platforms.platform import FakePlatform, Fault, Person, Place
from tests.support.platforms.telegram import DRAFT, FakeTelegram

# The SDK warns of itself whenever it reads a 429.
pytestmark = pytest.mark.filterwarnings("ignore:.*retry_after.*:DeprecationWarning")


@contextlib.asynccontextmanager
async def bot_of(fake: FakeTelegram, *, token: str = "") -> AsyncIterator[Bot]:
    base = fake.api_base
    bot = Bot(token or fake.token, base_url=f"{base}/bot", base_file_url=f"{base}/file/bot")
    async with bot:
        yield bot


@contextlib.asynccontextmanager
async def talking(clock: Clock | None = None) -> AsyncIterator[tuple[FakeTelegram, Bot, Person, Place]]:
    async with FakeTelegram(clock=clock, lenient=True) as fake, bot_of(fake) as bot:
        ann = fake.person("Ann")
        yield fake, bot, ann, fake.private_chat(ann)


async def test_it_is_a_platform_and_its_settings_lie_in_a_private_file(tmp_path: Path) -> None:
    async with FakeTelegram() as fake:
        platform: FakePlatform = fake
        settings = platform.overrides(tmp_path)
        assert settings[0] == f'channels.telegram.token="file:{tmp_path}/telegram-token"'
        assert settings[1:] == (
            f'channels.telegram.api_base="{fake.api_base}"',
            'channels.telegram.access="open"',
        )
        path = tmp_path / "telegram-token"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_text() == fake.token


async def test_a_wrong_token_is_unauthorised() -> None:
    async with FakeTelegram() as fake:
        with pytest.raises(InvalidToken):
            async with bot_of(fake, token="7:wrong"):
                pass


async def test_updates_stay_until_the_offset_passes_them() -> None:
    async with talking() as (fake, bot, ann, place):
        first = await fake.say(place, ann, "one")
        await fake.say(place, ann, "two")
        updates = await bot.get_updates()
        again = await bot.get_updates()
        assert [update.update_id for update in updates] == [update.update_id for update in again]
        assert updates[0].message is not None
        assert str(updates[0].message.message_id) == first
        assert fake.unacknowledged() == 2
        left = await bot.get_updates(offset=updates[1].update_id)
        assert [update.message and update.message.text for update in left] == ["two"]
        assert fake.unacknowledged() == 1


async def test_a_poll_waits_for_the_next_update_and_a_second_one_is_a_conflict() -> None:
    async with talking() as (fake, bot, ann, place), asyncio.TaskGroup() as group:
        poll = group.create_task(bot.get_updates(timeout=20))
        await fake.until(lambda: fake.state.updates.polling or poll.done())
        async with bot_of(fake) as another:
            with pytest.raises(Conflict):
                await another.get_updates()
        await fake.say(place, ann, "hello")
        assert [update.message and update.message.text for update in await poll] == ["hello"]


async def test_a_cancelled_poll_ends_at_once() -> None:
    async with talking() as (fake, bot, _, __):
        async with asyncio.TaskGroup() as group:
            poll = group.create_task(bot.get_updates(timeout=50))
            await fake.until(lambda: fake.state.updates.polling)
            poll.cancel()
        await fake.until(lambda: not fake.state.updates.polling)
        assert await bot.get_updates() == ()


async def test_a_redelivered_update_carries_the_same_id() -> None:
    async with talking() as (fake, bot, ann, place):
        fake.faults.duplicate_share = 1.0
        await fake.say(place, ann, "twice")
        first, second = await bot.get_updates()
        assert first.update_id == second.update_id
        assert fake.unacknowledged() == 1


async def test_a_message_is_shown_edited_and_deleted() -> None:
    async with talking() as (fake, bot, ann, place):
        asked = await fake.say(place, ann, "hi")
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="q:1")]])
        sent = await bot.send_message(
            int(ann.id),
            "hello there",
            entities=[MessageEntity("bold", 0, 5)],
            reply_markup=keyboard,
            reply_parameters=ReplyParameters(int(asked)),
        )
        shown = fake.visible(place)[-1]
        assert (shown.text, shown.buttons, shown.reply_to, shown.author) == (
            "hello there",
            ("Yes",),
            asked,
            "",
        )
        await bot.edit_message_text("hello again", int(ann.id), sent.message_id)
        with pytest.raises(BadRequest, match=r"(?i)message is not modified"):
            await bot.edit_message_text("hello again", int(ann.id), sent.message_id)
        assert fake.visible(place)[-1].edits == 1
        await bot.delete_message(int(ann.id), sent.message_id)
        with pytest.raises(BadRequest, match=r"(?i)message to edit not found"):
            await bot.edit_message_text("gone", int(ann.id), sent.message_id)
        assert fake.bot_texts(place) == []


@pytest.mark.parametrize(
    ("text", "entities", "words"),
    [
        ("", None, "message text is empty"),
        (" \n", None, "message text is empty"),
        ("x" * 4097, None, "message is too long"),
        ("\U0001f600" * 2049, None, "message is too long"),
        ("abc", [("bold", 0, 4)], "can't parse entities"),
        ("abc", [("bold", -1, 2)], "can't parse entities"),
        ("\U0001f600b", [("bold", 1, 1)], "can't parse entities"),
        ("abcdef", [("bold", 0, 3), ("italic", 2, 3)], "can't parse entities"),
        ("abc", [("shouting", 0, 3)], "can't parse entities"),
    ],
)
async def test_it_refuses_texts_that_telegram_refuses(
    text: str, entities: list[tuple[str, int, int]] | None, words: str
) -> None:
    async with talking() as (_, bot, ann, __):
        parsed = [MessageEntity(*entity) for entity in entities or ()]
        with pytest.raises(BadRequest, match=rf"(?i){words}"):
            await bot.send_message(int(ann.id), text, entities=parsed)


async def test_lengths_count_utf16_units_and_the_longest_text_passes() -> None:
    async with talking() as (fake, bot, ann, place):
        await bot.send_message(int(ann.id), "\U0001f600" * 2048)
        assert fake.bot_texts(place) == ["\U0001f600" * 2048]


async def test_it_refuses_long_callback_data_unknown_chats_and_lost_replies() -> None:
    async with talking() as (fake, bot, ann, _):
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="x" * 65)]])
        with pytest.raises(BadRequest, match=r"(?i)BUTTON_DATA_INVALID"):
            await bot.send_message(int(ann.id), "?", reply_markup=keyboard)
        with pytest.raises(BadRequest, match=r"(?i)chat not found"):
            await bot.send_message(42, "?")
        with pytest.raises(BadRequest, match=r"(?i)message to be replied not found"):
            await bot.send_message(int(ann.id), "?", reply_parameters=ReplyParameters(99))
        lenient = ReplyParameters(99, allow_sending_without_reply=True)
        sent = await bot.send_message(int(ann.id), "?", reply_parameters=lenient)
        assert sent.reply_to_message is None
        fake.state.blocked.add(int(ann.id))
        with pytest.raises(Forbidden):
            await bot.send_message(int(ann.id), "?")


async def test_more_than_a_burst_in_one_chat_is_answered_with_a_wait() -> None:
    async with talking(ManualClock()) as (fake, bot, ann, _):
        fake.lenient = False
        for number in range(3):
            await bot.send_message(int(ann.id), f"{number}")
        with pytest.raises(RetryAfter) as caught:
            await bot.send_message(int(ann.id), "one too many")
        assert "Retry in 1 seconds" in str(caught.value)
        fake.lenient = True
        await bot.send_message(int(ann.id), "passes")


async def test_a_draft_lives_in_a_private_chat_until_the_message_comes() -> None:
    async with talking() as (fake, bot, ann, place):
        with pytest.raises(BadRequest):
            await bot.send_message_draft(int(fake.room("r").chat), 5, "no")
        await bot.send_message_draft(int(ann.id), 5, "half", api_kwargs={"can_stop": True})
        assert [(one.native_id, one.text, one.buttons) for one in fake.visible(place)] == [
            (f"{DRAFT}5", "half", ("Stop",))
        ]
        assert fake.bot_texts(place) == []
        await bot.get_updates(allowed_updates=["stopped_message_generation"])
        await fake.press(place, ann, f"{DRAFT}5", "Stop")
        (update,) = await bot.get_updates()
        assert update.api_kwargs["stopped_message_generation"]["draft_id"] == 5
        await bot.send_message(int(ann.id), "whole")
        assert [one.text for one in fake.visible(place)] == ["whole"]


async def test_a_draft_vanishes_after_thirty_seconds() -> None:
    clock = ManualClock()
    async with FakeTelegram(clock=clock) as fake, bot_of(fake) as bot:
        place = fake.private_chat(fake.person("Ann"))
        await bot.send_message_draft(int(place.chat), 5, "half")
        await clock.advance(29.0)
        assert [one.text for one in fake.visible(place)] == ["half"]
        await clock.advance(2.0)
        assert fake.visible(place) == ()


async def test_a_press_shows_the_words_of_the_answer() -> None:
    async with talking() as (fake, bot, ann, place), asyncio.TaskGroup() as group:
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="q:1")]])
        sent = await bot.send_message(int(ann.id), "?", reply_markup=keyboard)
        with pytest.raises(LookupError):
            await fake.press(place, ann, str(sent.message_id), "No")
        press = group.create_task(fake.press(place, ann, str(sent.message_id), "Yes"))
        (update,) = await bot.get_updates(timeout=5)
        assert update.callback_query is not None
        assert update.callback_query.data == "q:1"
        await update.callback_query.answer("noted")
        assert await press == "noted"


async def test_files_go_in_both_directions() -> None:
    async with talking() as (fake, bot, ann, place):
        await bot.send_document(int(ann.id), b"# long", filename="answer.md", caption="the rest")
        assert fake.visible(place)[-1].file_name == "answer.md"
        await fake.speak(place, ann, b"OggS", mime="audio/ogg")
        (update,) = await bot.get_updates()
        assert update.message is not None
        assert update.message.voice is not None
        file = await update.message.voice.get_file()
        assert bytes(await file.download_as_bytearray()) == b"OggS"


async def test_faults_are_played_in_order() -> None:
    async with talking() as (fake, bot, ann, place):
        kinds: list[Any] = ["rate_limit", "error_before", "error_after", "drop", "refuse_format"]
        fake.faults.script.extend(Fault(method="sendMessage", kind=kind) for kind in kinds)
        with pytest.raises(RetryAfter):
            await bot.send_message(int(ann.id), "limited")
        with pytest.raises(NetworkError):
            await bot.send_message(int(ann.id), "before")
        with pytest.raises(NetworkError):
            await bot.send_message(int(ann.id), "after")
        with pytest.raises(NetworkError):
            await bot.send_message(int(ann.id), "dropped")
        with pytest.raises(BadRequest, match=r"(?i)can't parse entities"):
            await bot.send_message(int(ann.id), "format")
        assert fake.bot_texts(place) == ["after"]
        fake.faults.script.append(Fault(method="sendMessage", kind="hang"))
        with pytest.raises(TimedOut):
            # Long enough for the platform to take the message first.
            await bot.send_message(int(ann.id), "hung", read_timeout=1.0)
        assert fake.bot_texts(place) == ["after", "hung"]


async def test_a_webhook_gets_each_update_until_it_answers_2xx() -> None:
    seen: list[tuple[str, str]] = []

    async def hook(request: web.Request) -> web.Response:
        body = await request.json()
        seen.append((request.headers["X-Telegram-Bot-Api-Secret-Token"], body["message"]["text"]))
        return web.Response(status=503 if len(seen) == 1 else 200)

    app = web.Application()
    app.router.add_post("/hook", hook)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with talking() as (fake, bot, ann, place):
            port = runner.addresses[0][1]
            await bot.set_webhook(f"http://127.0.0.1:{port}/hook", secret_token="s3cret")
            await fake.say(place, ann, "one")
            await fake.say(place, ann, "two")
            await fake.until(lambda: fake.unacknowledged() == 0)
            assert seen == [("s3cret", "one"), ("s3cret", "one"), ("s3cret", "two")]
            with pytest.raises(Conflict):
                await bot.get_updates()
    finally:
        await runner.cleanup()


async def test_json_bodies_are_understood_too() -> None:
    async with FakeTelegram() as fake, aiohttp.ClientSession() as session:
        ann = fake.person("Ann")
        call = {"chat_id": int(ann.id), "text": "by json"}
        async with session.post(f"{fake.api_base}/bot{fake.token}/sendMessage", json=call) as response:
            assert (await response.json())["result"]["text"] == "by json"
