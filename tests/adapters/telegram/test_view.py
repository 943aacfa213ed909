"""Previews: drafts in private chats, an edited message in rooms."""

from __future__ import annotations

import asyncio

import pytest

from adapters.channel import LiveView, Outgoing
from adapters.telegram.view import draft_id_of
from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import SessionCommand
from tests.adapters.telegram.harness import Walk, idle, running, turning
from tests.support.platforms.platform import Fault, Place
from tests.support.platforms.telegram import DRAFT


def view_of(walk: Walk, place: Place | None = None, *, native_id: str = "", asked: str = "") -> LiveView:
    view = walk.adapter.open_view(walk.thread(place), key="m_1:0", reply_handle=asked, native_id=native_id)
    assert view is not None
    return view


def growing(text: str) -> Outgoing:
    return Outgoing(text=text, unfinished=True)


async def test_a_private_chat_sees_a_draft_that_the_answer_replaces() -> None:
    async with idle() as walk:
        view = view_of(walk)
        for text in ("The", "The **answer", "The **answer** is"):
            await view.show(growing(text))
        (draft,) = walk.fake.visible(walk.place)
        assert draft.native_id == f"{DRAFT}{draft_id_of('m_1:0')}"
        assert draft.text == "The answer is"
        assert draft.buttons == ("Stop",)
        assert view.native_id == ""
        await view.close()
        (part,) = walk.adapter.render(Outgoing(text="The answer is 42."))
        await walk.adapter.post(walk.thread(), part, key="m_1:0")
        assert [shown.text for shown in walk.fake.visible(walk.place)] == ["The answer is 42."]


async def test_a_draft_of_a_long_answer_shows_its_end() -> None:
    async with idle() as walk:
        await view_of(walk).show(growing("word " * 3000 + "newest"))
        (draft,) = walk.fake.visible(walk.place)
        assert draft.text.endswith("newest")


async def test_a_draft_that_waits_is_renewed_before_it_vanishes_and_not_after_its_end() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as walk, asyncio.TaskGroup() as group:
        task = group.create_task(walk.adapter.run(walk.inbox))
        await walk.fake.until(lambda: walk.fake.state.updates.polling or task.done())
        view = view_of(walk)
        await view.show(growing("thinking"))

        def drafts() -> int:
            return sum(call.method == "sendMessageDraft" for call in walk.fake.calls)

        before = clock.monotonic()
        await turning(clock, walk.fake, lambda: drafts() == 2)
        assert 20 < clock.monotonic() - before < 30
        await view.close()
        await clock.advance(120.0)
        assert drafts() == 2
        task.cancel()


async def test_the_stop_button_of_a_draft_is_a_command() -> None:
    async with running() as walk:
        await view_of(walk).show(growing("long"))
        await walk.fake.press(walk.place, walk.ann, f"{DRAFT}{draft_id_of('m_1:0')}", "Stop")
        await walk.arrived(1)
        (item,) = walk.inbox.items
        assert isinstance(item, SessionCommand)
        assert (item.name, item.author.id, item.thread) == ("stop", walk.ann.id, walk.thread())


async def test_a_room_sees_one_message_that_grows_and_becomes_the_answer() -> None:
    async with idle() as walk:
        room = walk.fake.room("team", walk.ann)
        asked = await walk.fake.say(room, walk.ann, "tell")
        view = view_of(walk, room, asked=asked)
        for text in ("The", "The answer", "The answer", "The answer is"):
            await view.show(growing(text))
        shown = walk.fake.visible(room)[-1]
        assert (shown.text, shown.edits, shown.reply_to) == ("The answer is", 2, asked)
        assert shown.buttons == ("Stop",)
        assert view.native_id == shown.native_id
        await view.close()
        (part,) = walk.adapter.render(Outgoing(text="The answer is 42."))
        await walk.adapter.edit(walk.thread(room), view.native_id, part)
        final = walk.fake.visible(room)[-1]
        assert (final.text, final.buttons) == ("The answer is 42.", ())


async def test_a_preview_goes_on_with_the_message_that_an_earlier_attempt_left() -> None:
    async with idle() as walk:
        (part,) = walk.adapter.render(Outgoing(text="…"))
        receipt = await walk.adapter.post(walk.thread(), part, key="m_1:0")
        view = view_of(walk, native_id=receipt.native_id)
        await view.show(growing("going on"))
        (shown,) = walk.fake.visible(walk.place)
        assert (shown.native_id, shown.text) == (receipt.native_id, "going on")


async def test_a_server_without_drafts_gets_edits_from_then_on() -> None:
    async with idle() as walk:
        walk.fake.state.methods_removed.add("sendMessageDraft")
        with pytest.raises(Exception, match="Not Found") as caught:
            await view_of(walk).show(growing("x"))
        assert walk.adapter.classify(caught.value).kind == "invalid"
        view = view_of(walk)
        await view.show(growing("x"))
        assert view.native_id


async def test_a_fault_of_a_preview_is_raised_for_the_gateway() -> None:
    async with idle() as walk:
        walk.fake.faults.script.append(Fault(method="sendMessageDraft", kind="rate_limit", retry_after_s=2))
        view = view_of(walk)
        with pytest.raises(Exception, match="retry after") as caught:
            await view.show(growing("x"))
        assert walk.adapter.classify(caught.value).retry_after_s == 2.0
        await view.show(growing("x"))
        assert len(walk.fake.visible(walk.place)) == 1


async def test_previews_can_be_switched_off_and_plain_replies_edit_nothing() -> None:
    async with idle(previews=False) as walk:
        thread = walk.thread()
        assert walk.adapter.open_view(thread, key="m_1:0", reply_handle="", native_id="") is None
    async with idle(replies="plain") as walk:
        room = walk.thread(walk.fake.room("team"))
        assert walk.adapter.open_view(room, key="m_1:0", reply_handle="", native_id="") is None
        assert view_of(walk).native_id == ""
