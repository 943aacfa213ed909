"""Receiving by polling: what is durable is confirmed, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import aiohttp
import pytest

from adapters.channel import Acceptance
from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.settings import TelegramOptions
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.commands import COMMAND_NAMES
from pipeline.domain.errors import ConfigurationError, InvalidInput, StorageError
from pipeline.domain.messages import Inbound, InboundMessage
from tests.adapters.telegram.harness import idle, running, settings_for, turning
from tests.support.platforms.platform import Fault
from tests.support.platforms.telegram import FakeTelegram


def refusing(should_fail: Callable[[Inbound], bool]) -> Callable[[Inbound], Acceptance]:
    def answer(item: Inbound) -> Acceptance:
        if should_fail(item):
            raise StorageError("the disk is full")
        return Acceptance(status="accepted", message_id=item.message_id)

    return answer


async def test_a_message_reaches_the_inbox_and_is_confirmed() -> None:
    async with running() as harness:
        await harness.fake.say(harness.place, harness.ann, "hello")
        await harness.fake.until(lambda: harness.fake.unacknowledged() == 0)
        (item,) = harness.inbox.items
        assert isinstance(item, InboundMessage)
        assert (item.text, item.author.id, item.thread) == ("hello", harness.ann.id, harness.thread())
        assert item.private
        assert item.addressed
        assert harness.adapter.health().state == "up"
        assert harness.adapter.health().received_at is not None


async def test_what_waited_before_the_start_is_not_dropped() -> None:
    async with idle() as harness:
        harness.fake.state.updates.webhook = {"url": "https://old.example", "secret": ""}
        for text in ("one", "two", "three"):
            await harness.fake.say(harness.place, harness.ann, text)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(harness.adapter.run(harness.inbox))
            await harness.fake.until(lambda: harness.fake.unacknowledged() == 0 or task.done())
            task.cancel()
        assert harness.inbox.texts == ["one", "two", "three"]


async def test_nothing_is_confirmed_before_the_inbox_has_it() -> None:
    gate, inside = asyncio.Event(), asyncio.Event()

    async def slow(item: Inbound) -> Acceptance:
        inside.set()
        await gate.wait()
        return Acceptance(status="accepted", message_id=item.message_id)

    async with idle() as harness, asyncio.TaskGroup() as group:
        task = group.create_task(harness.adapter.run(slow))
        await harness.fake.say(harness.place, harness.ann, "hello")
        await inside.wait()
        assert harness.fake.unacknowledged() == 1
        gate.set()
        await harness.fake.until(lambda: harness.fake.unacknowledged() == 0)
        task.cancel()


async def test_a_failed_write_is_asked_for_again_in_order_while_other_chats_continue() -> None:
    failures = iter([True, True, False])
    clock = ManualClock()
    async with idle(clock=clock) as harness, asyncio.TaskGroup() as group:
        bob = harness.fake.person("Bob")
        harness.inbox.answers = refusing(
            lambda item: isinstance(item, InboundMessage) and item.text == "first" and next(failures, False)
        )
        await harness.fake.say(harness.place, harness.ann, "first")
        await harness.fake.say(harness.place, harness.ann, "second")
        await harness.fake.say(harness.fake.private_chat(bob), bob, "bob's")
        task = group.create_task(harness.adapter.run(harness.inbox))
        await turning(clock, harness.fake, lambda: harness.adapter.health().state == "down", step_s=0)
        assert harness.inbox.texts == ["bob's"]
        assert harness.fake.unacknowledged() == 3
        await turning(clock, harness.fake, lambda: harness.fake.unacknowledged() == 0)
        assert harness.inbox.texts == ["bob's", "first", "second"]
        task.cancel()


async def test_an_update_that_can_never_be_stored_holds_no_one_up() -> None:
    def answer(item: Inbound) -> Acceptance:
        if isinstance(item, InboundMessage) and item.text == "bad":
            raise InvalidInput("no")
        return Acceptance(status="accepted", message_id=item.message_id)

    async with running() as harness:
        harness.inbox.answers = answer
        await harness.fake.say(harness.place, harness.ann, "bad")
        await harness.fake.say(harness.place, harness.ann, "good")
        await harness.fake.until(lambda: harness.fake.unacknowledged() == 0)
        assert harness.inbox.texts == ["good"]


async def test_a_redelivered_update_has_the_same_identity() -> None:
    async with running() as harness:
        harness.fake.faults.duplicate_share = 1.0
        await harness.fake.say(harness.place, harness.ann, "twice")
        await harness.arrived(2)
        first, second = harness.inbox.items
        assert (first.native_id, first.message_id) == (second.native_id, second.message_id)


async def test_each_chat_keeps_its_order_under_redelivery() -> None:
    async with running() as harness:
        harness.fake.faults.duplicate_share = 0.3
        people = [harness.fake.person(name) for name in ("Ann", "Bob", "Eve")]
        for number in range(120):
            person = people[number % 3]
            await harness.fake.say(harness.fake.private_chat(person), person, f"{number}")
        await harness.fake.until(lambda: harness.fake.unacknowledged() == 0)
        for index, person in enumerate(people):
            mine = [item for item in harness.inbox.items if item.author.id == person.id]
            texts = list(dict.fromkeys(item.text for item in mine if isinstance(item, InboundMessage)))
            assert texts == [f"{number}" for number in range(index, 120, 3)]


async def test_a_second_process_is_named_in_words_and_polling_continues() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as harness, asyncio.TaskGroup() as group, aiohttp.ClientSession() as session:
        url = f"{harness.fake.api_base}/bot{harness.fake.token}/getUpdates"
        rival = group.create_task(session.post(url, json={"timeout": 50}))
        await harness.fake.until(lambda: harness.fake.state.updates.polling)
        task = group.create_task(harness.adapter.run(harness.inbox))
        await turning(clock, harness.fake, lambda: harness.adapter.health().state == "down", step_s=0)
        assert "409" in harness.adapter.health().detail
        asked = sum(call.method == "getUpdates" for call in harness.fake.calls)
        await clock.advance(9.0)
        assert sum(call.method == "getUpdates" for call in harness.fake.calls) == asked
        rival.cancel()
        await harness.fake.until(lambda: not harness.fake.state.updates.polling)
        await turning(clock, harness.fake, lambda: harness.fake.state.updates.polling)
        await harness.fake.say(harness.place, harness.ann, "still here")
        await harness.arrived(1)
        assert harness.adapter.health().state == "up"
        task.cancel()


async def test_an_album_becomes_one_message() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as harness, asyncio.TaskGroup() as group:

        def photo(number: int, caption: str) -> None:
            message = {
                "message_id": number,
                "date": 1,
                "chat": {"id": int(harness.ann.id), "type": "private"},
                "from": harness.fake.state.users[int(harness.ann.id)],
                "media_group_id": "77",
                "photo": [{"file_id": f"photo{number}", "width": 90, "height": 90}],
                "caption": caption,
            }
            harness.fake.push("message", message)

        photo(1, "the trip")
        task = group.create_task(harness.adapter.run(harness.inbox))
        await harness.fake.until(lambda: any(call.method == "getUpdates" for call in harness.fake.calls))
        photo(2, "")
        photo(3, "")
        await turning(clock, harness.fake, lambda: harness.fake.unacknowledged() == 0)
        (item,) = harness.inbox.items
        assert isinstance(item, InboundMessage)
        assert item.text == "the trip"
        assert [ref.handle for ref in item.attachments] == ["photo1", "photo2", "photo3"]
        task.cancel()


@pytest.mark.parametrize("token", ["", "nonsense", "123:short", "abc:" + "x" * 35])
async def test_a_token_that_is_none_is_refused_without_a_call(token: str) -> None:
    async with FakeTelegram() as fake:
        settings = TelegramOptions(token=lambda: token, api_base=fake.api_base)
        with pytest.raises(ConfigurationError, match=r"channels\.telegram\.token"):
            await TelegramAdapter(settings, SystemClock()).run(lambda item: None)  # type: ignore[arg-type,return-value]  # never called
        assert fake.calls == []


async def test_a_refused_token_is_named_and_never_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with running() as harness:
        wrong = "7770001:" + "w" * 35
        adapter = TelegramAdapter(
            TelegramOptions(token=lambda: wrong, api_base=harness.fake.api_base), SystemClock()
        )
        with pytest.raises(ConfigurationError, match="BotFather") as caught:
            await adapter.run(harness.inbox)
        assert wrong not in str(caught.value)
        assert adapter.health().state == "down"
        await harness.fake.say(harness.place, harness.ann, "hello")
        await harness.arrived(1)
    assert wrong not in caplog.text
    assert harness.fake.token not in caplog.text
    assert "getUpdates" in caplog.text


async def test_a_token_that_is_revoked_while_polling_ends_the_channel() -> None:
    async with FakeTelegram() as fake:
        token = fake.token
        settings = TelegramOptions(token=lambda: token, api_base=fake.api_base)
        adapter = TelegramAdapter(settings, SystemClock())
        async with asyncio.TaskGroup() as group:
            group.create_task(fake.until(lambda: fake.state.updates.polling)).add_done_callback(
                lambda _: _revoke(fake)
            )
            with pytest.raises(ConfigurationError, match="BotFather"):
                await _run(adapter)


async def test_cancelling_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    async with running() as harness:
        await harness.fake.say(harness.place, harness.ann, "hello")
        await harness.arrived(1)
    assert harness.adapter.health().state == "down"
    assert asyncio.all_tasks() - before == set()


async def test_a_poll_that_hangs_is_given_up_and_asked_again() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as harness, asyncio.TaskGroup() as group:
        harness.fake.faults.script.append(Fault(method="getUpdates", kind="hang"))
        task = group.create_task(harness.adapter.run(harness.inbox))
        await turning(clock, harness.fake, lambda: harness.adapter.health().state == "down")
        assert harness.adapter.health().detail == "Telegram did not answer in time"
        await turning(clock, harness.fake, lambda: harness.adapter.health().state == "up")
        task.cancel()


async def test_a_flood_wait_of_a_poll_is_obeyed() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as harness, asyncio.TaskGroup() as group:
        harness.fake.faults.script.append(Fault(method="getUpdates", kind="rate_limit", retry_after_s=40))
        task = group.create_task(harness.adapter.run(harness.inbox))
        await turning(clock, harness.fake, lambda: harness.adapter.health().state == "down", step_s=0)
        await clock.advance(39.0)
        assert harness.adapter.health().state == "down"
        await turning(clock, harness.fake, lambda: harness.adapter.health().state == "up")
        task.cancel()


async def test_a_server_error_is_waited_out() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as harness, asyncio.TaskGroup() as group:
        harness.fake.faults.script.append(Fault(method="deleteWebhook", kind="error_before"))
        task = group.create_task(harness.adapter.run(harness.inbox))
        await turning(clock, harness.fake, lambda: harness.fake.state.updates.polling)
        await harness.fake.say(harness.place, harness.ann, "hello")
        await harness.arrived(1)
        assert harness.inbox.texts == ["hello"]
        task.cancel()


async def test_the_menu_of_commands_is_set() -> None:
    async with running() as harness:
        menus = harness.fake.state.commands
        await harness.fake.until(lambda: set(menus) == {"", "de", "fr", "es"})
        assert {language: tuple(one["command"] for one in menu) for language, menu in menus.items()} == (
            dict.fromkeys(menus, COMMAND_NAMES)
        )
        assert [menus[one][0]["description"] for one in ("", "de")] == [
            "Stop the answer in progress and everything that waits",
            "Die laufende Antwort und alles Wartende anhalten",
        ]


def _revoke(fake: FakeTelegram) -> None:
    fake.state.token = "1:revoked"
    fake.push("message", {})


async def _run(adapter: TelegramAdapter) -> None:
    async def never_asked(item: Inbound) -> Acceptance:
        raise AssertionError(item)

    await adapter.run(never_asked)


def test_settings_name_what_is_missing_for_a_webhook() -> None:
    fake = FakeTelegram()
    with pytest.raises(ConfigurationError, match="webhook_url"):
        settings_for(fake, mode="webhook")
    with pytest.raises(ConfigurationError, match="webhook_secret"):
        settings_for(fake, mode="webhook", webhook_url="https://bot.example/telegram")
