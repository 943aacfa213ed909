"""A message that Telegram made and did not confirm is found by an edit, and nobody else's is taken for it."""

from __future__ import annotations

import pytest
from telegram.error import TelegramError

from adapters.channel import Outgoing, Part
from adapters.telegram.orphans import MOST_TRIED
from pipeline.domain.errors import InvalidInput
from tests.adapters.telegram.harness import Walk, idle
from tests.support.platforms.platform import Fault


def _part(walk: Walk, words: str) -> Part:
    return walk.adapter.render(Outgoing(text=words))[0]


async def _lost(walk: Walk, part: Part) -> None:
    walk.fake.faults.script.append(Fault(method="sendMessage", kind="error_after"))
    with pytest.raises(TelegramError):
        await walk.adapter.post(walk.thread(), part, key="m:0")


async def _repeat(walk: Walk) -> str:
    receipt = await walk.adapter.post(walk.thread(), _part(walk, "(again) The answer"), key="m:0")
    return receipt.native_id


async def test_a_lost_message_is_found_and_the_repeat_can_go() -> None:
    async with idle() as walk:
        asked = await walk.fake.say(walk.place, walk.ann, "a question")
        part = _part(walk, "The answer")
        await _lost(walk, part)
        repeat = await _repeat(walk)
        found = await walk.adapter.adopt(walk.thread(), part, repeat=repeat, labels=(), known=(asked,))
        assert found is not None
        await walk.adapter.take_back(walk.thread(), repeat)
        await walk.adapter.take_back(walk.thread(), repeat)
        assert walk.fake.bot_texts(walk.place) == ["The answer"]


async def test_messages_of_people_and_of_other_chats_are_never_taken_for_it() -> None:
    async with idle() as walk:
        asked = await walk.fake.say(walk.place, walk.ann, "a question")
        await walk.fake.say(walk.place, walk.ann, "another one")
        ben = walk.fake.person("ben")
        elsewhere = walk.fake.private_chat(ben)
        await walk.fake.say(elsewhere, ben, "hello")
        await walk.adapter.post(walk.thread(elsewhere), _part(walk, "Hello, Ben"), key="b:0")
        repeat = await _repeat(walk)
        part = _part(walk, "The answer")
        found = await walk.adapter.adopt(walk.thread(), part, repeat=repeat, labels=(), known=(asked,))
        assert found is None
        assert walk.fake.bot_texts(elsewhere) == ["Hello, Ben"]


async def test_what_this_process_has_posted_before_is_left_alone() -> None:
    async with idle() as walk:
        asked = await walk.fake.say(walk.place, walk.ann, "a question")
        await walk.adapter.post(walk.thread(), _part(walk, "An earlier answer"), key="e:0")
        part = _part(walk, "The answer")
        await _lost(walk, part)
        repeat = await _repeat(walk)
        found = await walk.adapter.adopt(walk.thread(), part, repeat=repeat, labels=(), known=(asked,))
        assert found is not None
        assert walk.fake.bot_texts(walk.place)[:2] == ["An earlier answer", "The answer"]


async def test_where_too_many_messages_may_be_it_nobody_guesses() -> None:
    async with idle() as walk:
        part, repeat = _part(walk, "The answer"), str(MOST_TRIED + 102)
        with pytest.raises(InvalidInput):
            await walk.adapter.adopt(walk.thread(), part, repeat=repeat, labels=(), known=("100",))
        with pytest.raises(InvalidInput):
            await walk.adapter.adopt(walk.thread(), part, repeat=repeat, labels=(), known=())
        assert not walk.fake.calls


async def test_a_preview_in_a_room_without_confirmation_becomes_the_answer() -> None:
    async with idle() as walk:
        room = walk.fake.room("lounge", walk.ann)
        asked = await walk.fake.say(room, walk.ann, "a question")
        thread = walk.thread(room)
        view = walk.adapter.open_view(thread, key="m:0", reply_handle=asked, native_id="")
        assert view is not None
        walk.fake.faults.script.append(Fault(method="sendMessage", kind="error_after"))
        with pytest.raises(TelegramError):
            await view.show(Outgoing(text="The ans", unfinished=True))
        await view.show(Outgoing(text="The answ", unfinished=True))
        assert walk.fake.bot_texts(room) == ["The ans"], "it is not posted a second time"
        with pytest.raises(InvalidInput):
            await view.close()
        part = _part(walk, "The answer")
        repeat = (await walk.adapter.post(thread, part, key="m:0")).native_id
        found = await walk.adapter.adopt(thread, part, repeat=repeat, labels=(), known=(asked,))
        assert found is not None
        await walk.adapter.take_back(thread, repeat)
        assert walk.fake.bot_texts(room) == ["The answer"]
