"""A message that Telegram made and did not confirm is found by an edit, and no one else's is taken for it."""

from __future__ import annotations

import pytest
from telegram.error import TelegramError

from adapters.channel import Outgoing, Part
from adapters.telegram.orphans import MOST_TRIED
from pipeline.domain.errors import InvalidInput
from tests.adapters.telegram.harness import TelegramHarness, idle
from tests.support.platforms.platform import Fault


def _part(harness: TelegramHarness, words: str) -> Part:
    return harness.adapter.render(Outgoing(text=words))[0]


async def _lost(harness: TelegramHarness, part: Part) -> None:
    harness.fake.faults.script.append(Fault(method="sendMessage", kind="error_after"))
    with pytest.raises(TelegramError):
        await harness.adapter.post(harness.thread(), part, key="m:0")


async def _repeat(harness: TelegramHarness) -> str:
    receipt = await harness.adapter.post(harness.thread(), _part(harness, "(again) The answer"), key="m:0")
    return receipt.native_id


async def test_a_lost_message_is_found_and_the_repeat_can_go() -> None:
    async with idle() as harness:
        asked = await harness.fake.say(harness.place, harness.ann, "a question")
        part = _part(harness, "The answer")
        await _lost(harness, part)
        repeat = await _repeat(harness)
        found = await harness.adapter.adopt(harness.thread(), part, repeat=repeat, labels=(), known=(asked,))
        assert found is not None
        await harness.adapter.take_back(harness.thread(), repeat)
        await harness.adapter.take_back(harness.thread(), repeat)
        assert harness.fake.bot_texts(harness.place) == ["The answer"]


async def test_messages_of_people_and_of_other_chats_are_never_taken_for_it() -> None:
    async with idle() as harness:
        asked = await harness.fake.say(harness.place, harness.ann, "a question")
        await harness.fake.say(harness.place, harness.ann, "another one")
        ben = harness.fake.person("ben")
        elsewhere = harness.fake.private_chat(ben)
        await harness.fake.say(elsewhere, ben, "hello")
        await harness.adapter.post(harness.thread(elsewhere), _part(harness, "Hello, Ben"), key="b:0")
        repeat = await _repeat(harness)
        part = _part(harness, "The answer")
        found = await harness.adapter.adopt(harness.thread(), part, repeat=repeat, labels=(), known=(asked,))
        assert found is None
        assert harness.fake.bot_texts(elsewhere) == ["Hello, Ben"]


async def test_what_this_process_has_posted_before_is_left_alone() -> None:
    async with idle() as harness:
        asked = await harness.fake.say(harness.place, harness.ann, "a question")
        await harness.adapter.post(harness.thread(), _part(harness, "An earlier answer"), key="e:0")
        part = _part(harness, "The answer")
        await _lost(harness, part)
        repeat = await _repeat(harness)
        found = await harness.adapter.adopt(harness.thread(), part, repeat=repeat, labels=(), known=(asked,))
        assert found is not None
        assert harness.fake.bot_texts(harness.place)[:2] == ["An earlier answer", "The answer"]


async def test_where_too_many_messages_may_be_it_no_one_guesses() -> None:
    async with idle() as harness:
        part, repeat = _part(harness, "The answer"), str(MOST_TRIED + 102)
        with pytest.raises(InvalidInput):
            await harness.adapter.adopt(harness.thread(), part, repeat=repeat, labels=(), known=("100",))
        with pytest.raises(InvalidInput):
            await harness.adapter.adopt(harness.thread(), part, repeat=repeat, labels=(), known=())
        assert not harness.fake.calls


async def test_a_preview_in_a_room_without_confirmation_becomes_the_answer() -> None:
    async with idle() as harness:
        room = harness.fake.room("lounge", harness.ann)
        asked = await harness.fake.say(room, harness.ann, "a question")
        thread = harness.thread(room)
        view = harness.adapter.open_view(thread, key="m:0", reply_handle=asked, native_id="")
        assert view is not None
        harness.fake.faults.script.append(Fault(method="sendMessage", kind="error_after"))
        with pytest.raises(TelegramError):
            await view.show(Outgoing(text="The ans", unfinished=True))
        await view.show(Outgoing(text="The answ", unfinished=True))
        assert harness.fake.bot_texts(room) == ["The ans"], "it is not posted a second time"
        with pytest.raises(InvalidInput):
            await view.close()
        part = _part(harness, "The answer")
        repeat = (await harness.adapter.post(thread, part, key="m:0")).native_id
        found = await harness.adapter.adopt(thread, part, repeat=repeat, labels=(), known=(asked,))
        assert found is not None
        await harness.adapter.take_back(thread, repeat)
        assert harness.fake.bot_texts(room) == ["The answer"]
