"""Buttons: what the presser sees, and when the buttons go."""

from __future__ import annotations

import pytest

from adapters.channel import Acceptance, Outgoing
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.messages import ApprovalReply, SessionCommand, button_handle
from tests.adapters.telegram.harness import TelegramHarness, running


def question(name: str) -> ApprovalRequired:
    return ApprovalRequired(
        message_id="m_1",
        session_id="ses_1",
        interaction_id=name,
        tool_name="shell",
        reasoning="to look",
        options=(f"Allow {name}", f"Deny {name}"),
        timeout_s=60.0,
    )


async def ask(harness: TelegramHarness, *names: str) -> str:
    (part,) = harness.adapter.render(
        Outgoing(text="May I?", questions=tuple(question(name) for name in names))
    )
    return (await harness.adapter.post(harness.thread(), part, key="m_1:0")).native_id


def buttons(harness: TelegramHarness) -> tuple[str, ...]:
    return harness.fake.visible(harness.place)[-1].buttons


async def test_an_accepted_press_shows_the_choice_and_takes_its_buttons_away() -> None:
    async with running() as harness:
        native_id = await ask(harness, "a")
        assert await harness.fake.press(harness.place, harness.ann, native_id, "Deny a") == "Deny a"
        (item,) = harness.inbox.items
        assert isinstance(item, ApprovalReply)
        assert (item.interaction_id, item.option) == (button_handle("a"), 1)
        await harness.fake.until(lambda: buttons(harness) == ())
        with pytest.raises(LookupError):
            await harness.fake.press(harness.place, harness.ann, native_id, "Deny a")


async def test_another_question_of_the_same_message_keeps_its_buttons() -> None:
    async with running() as harness:
        native_id = await ask(harness, "a", "b")
        await harness.fake.press(harness.place, harness.ann, native_id, "Allow a")
        await harness.fake.until(lambda: len(buttons(harness)) == 2)
        assert buttons(harness) == ("Allow b", "Deny b")


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("This question is for somebody else.", 2),
        ("You are not allowed here.", 2),
        ("This question is no longer open.", 0),
        ("This question has expired; nothing was done.", 0),
        ("This question has already been answered.", 0),
    ],
)
async def test_a_refused_press_gets_the_reason_and_closed_questions_lose_their_buttons(
    words: str, left: int
) -> None:
    async with running() as harness:
        harness.inbox.answers = lambda item: Acceptance(
            status="refused", message_id=item.message_id, reason=words, over=not left
        )
        native_id = await ask(harness, "a")
        assert await harness.fake.press(harness.place, harness.ann, native_id, "Allow a") == words
        await harness.fake.until(lambda: len(buttons(harness)) == left)


async def test_a_button_that_no_one_knows_is_answered() -> None:
    async with running() as harness:
        native_id = await ask(harness, "a")
        stored = harness.fake.state.find(int(harness.place.chat), int(native_id))
        assert stored is not None
        stored.markup = {"inline_keyboard": [[{"text": "Buy", "callback_data": "buy:1"}]]}
        assert "nothing" in await harness.fake.press(harness.place, harness.ann, native_id, "Buy")
        assert harness.inbox.items == []


async def test_the_stop_button_of_a_room_stops() -> None:
    async with running() as harness:
        room = harness.fake.room("team", harness.ann)
        view = harness.adapter.open_view(harness.thread(room), key="m_1:0", reply_handle="", native_id="")
        assert view is not None
        await view.show(Outgoing(text="long", unfinished=True))
        assert await harness.fake.press(room, harness.ann, view.native_id, "Stop") == "Stopping"
        (item,) = harness.inbox.items
        assert isinstance(item, SessionCommand)
        assert (item.name, item.private, item.thread) == ("stop", False, harness.thread(room))
