"""Previews: drafts in private chats, an edited message in rooms."""

from __future__ import annotations

import asyncio

import pytest

from adapters.channel import LiveView, Outgoing
from adapters.telegram.view import draft_id_of
from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import SessionCommand
from tests.adapters.telegram.harness import TelegramHarness, idle, running, turning
from tests.support.platforms.platform import Fault, Place
from tests.support.platforms.telegram import DRAFT


def view_of(
    harness: TelegramHarness, place: Place | None = None, *, native_id: str = "", asked: str = ""
) -> LiveView:
    view = harness.adapter.open_view(
        harness.thread(place), key="m_1:0", reply_handle=asked, native_id=native_id
    )
    assert view is not None
    return view


def growing(text: str) -> Outgoing:
    return Outgoing(text=text, unfinished=True)


async def test_a_private_chat_sees_a_draft_that_the_answer_replaces() -> None:
    async with idle() as harness:
        view = view_of(harness)
        for text in ("The", "The **answer", "The **answer** is"):
            await view.show(growing(text))
        (draft,) = harness.fake.visible(harness.place)
        assert draft.native_id == f"{DRAFT}{draft_id_of('m_1:0')}"
        assert draft.text == "The answer is"
        assert draft.buttons == ("Stop",)
        assert view.native_id == ""
        await view.close()
        (part,) = harness.adapter.render(Outgoing(text="The answer is 42."))
        await harness.adapter.post(harness.thread(), part, key="m_1:0")
        assert [shown.text for shown in harness.fake.visible(harness.place)] == ["The answer is 42."]


async def test_a_draft_of_a_long_answer_shows_its_end() -> None:
    async with idle() as harness:
        await view_of(harness).show(growing("word " * 3000 + "newest"))
        (draft,) = harness.fake.visible(harness.place)
        assert draft.text.endswith("newest")


async def test_a_draft_that_waits_is_renewed_before_it_vanishes_and_not_after_its_end() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as harness, asyncio.TaskGroup() as group:
        task = group.create_task(harness.adapter.run(harness.inbox))
        await harness.fake.until(lambda: harness.fake.state.updates.polling or task.done())
        view = view_of(harness)
        await view.show(growing("thinking"))

        def drafts() -> int:
            return sum(call.method == "sendMessageDraft" for call in harness.fake.calls)

        before = clock.monotonic()
        await turning(clock, harness.fake, lambda: drafts() == 2)
        assert 20 < clock.monotonic() - before < 30
        await view.close()
        await clock.advance(120.0)
        assert drafts() == 2
        task.cancel()


async def test_the_stop_button_of_a_draft_is_a_command() -> None:
    async with running() as harness:
        await view_of(harness).show(growing("long"))
        await harness.fake.press(harness.place, harness.ann, f"{DRAFT}{draft_id_of('m_1:0')}", "Stop")
        await harness.arrived(1)
        (item,) = harness.inbox.items
        assert isinstance(item, SessionCommand)
        assert (item.name, item.author.id, item.thread) == ("stop", harness.ann.id, harness.thread())


async def test_a_room_sees_one_message_that_grows_and_becomes_the_answer() -> None:
    async with idle() as harness:
        room = harness.fake.room("team", harness.ann)
        asked = await harness.fake.say(room, harness.ann, "tell")
        view = view_of(harness, room, asked=asked)
        for text in ("The", "The answer", "The answer", "The answer is"):
            await view.show(growing(text))
        shown = harness.fake.visible(room)[-1]
        assert (shown.text, shown.edits, shown.reply_to) == ("The answer is", 2, asked)
        assert shown.buttons == ("Stop",)
        assert view.native_id == shown.native_id
        await view.close()
        (part,) = harness.adapter.render(Outgoing(text="The answer is 42."))
        await harness.adapter.edit(harness.thread(room), view.native_id, part)
        final = harness.fake.visible(room)[-1]
        assert (final.text, final.buttons) == ("The answer is 42.", ())


async def test_a_preview_continues_with_the_message_that_an_earlier_attempt_left() -> None:
    async with idle() as harness:
        (part,) = harness.adapter.render(Outgoing(text="…"))
        receipt = await harness.adapter.post(harness.thread(), part, key="m_1:0")
        view = view_of(harness, native_id=receipt.native_id)
        await view.show(growing("continuing"))
        (shown,) = harness.fake.visible(harness.place)
        assert (shown.native_id, shown.text) == (receipt.native_id, "continuing")


async def test_a_server_without_drafts_gets_edits_from_then_on() -> None:
    async with idle() as harness:
        harness.fake.state.methods_removed.add("sendMessageDraft")
        with pytest.raises(Exception, match="Not Found") as caught:
            await view_of(harness).show(growing("x"))
        assert harness.adapter.classify(caught.value).kind == "invalid"
        view = view_of(harness)
        await view.show(growing("x"))
        assert view.native_id


async def test_a_fault_of_a_preview_is_raised_for_the_gateway() -> None:
    async with idle() as harness:
        harness.fake.faults.script.append(
            Fault(method="sendMessageDraft", kind="rate_limit", retry_after_s=2)
        )
        view = view_of(harness)
        with pytest.raises(Exception, match="retry after") as caught:
            await view.show(growing("x"))
        assert harness.adapter.classify(caught.value).retry_after_s == 2.0
        await view.show(growing("x"))
        assert len(harness.fake.visible(harness.place)) == 1


async def test_previews_can_be_switched_off_and_plain_replies_edit_nothing() -> None:
    async with idle(previews=False) as harness:
        thread = harness.thread()
        assert harness.adapter.open_view(thread, key="m_1:0", reply_handle="", native_id="") is None
    async with idle(replies="plain") as harness:
        room = harness.thread(harness.fake.room("team"))
        assert harness.adapter.open_view(room, key="m_1:0", reply_handle="", native_id="") is None
        assert view_of(harness).native_id == ""
