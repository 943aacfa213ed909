"""Answers that are given again, edited messages, and turns that were taken out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.end_to_end.page.accessibility import serious_violations
from tests.end_to_end.page.acts import ask, entries, ready, send
from tests.end_to_end.page.fake_gateway import FakeGateway
from tests.end_to_end.page.probes import POOR_CONTRAST

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def shown(page: Page, role: str) -> Locator:
    """The rows of one role that are not hidden, oldest first."""
    return entries(page, role).locator("visible=true")


async def _answered_again(
    gateway: FakeGateway, first: str, text: str, answer: str, *, version: str = "again"
) -> None:
    """What the gateway shows of a version of the message `first`."""
    version = f"{first}_{version}"
    await gateway.send(gateway.write("user", text, message_id=version, chat=gateway.chat, replaces=first))
    await gateway.send(gateway.write("assistant", answer, message_id=version, chat=gateway.chat))


async def test_an_answer_is_given_again_and_the_earlier_one_is_a_press_away(
    room: Page, gateway: FakeGateway
) -> None:
    message = await ask(room, gateway, "what to drink?")
    await gateway.answer(message, "tea")
    await expect(shown(room, "assistant")).to_contain_text("tea")
    await room.get_by_role("button", name="Regenerate").click()
    assert (await gateway.received("command"))["name"] == "retry"
    await _answered_again(gateway, message, "what to drink?", "coffee")
    await expect(shown(room, "assistant")).to_have_text([re.compile("coffee")])
    await expect(shown(room, "user")).to_have_count(1)
    versions = room.get_by_role("group", name="Versions of the answer")
    await expect(versions).to_contain_text("2 of 2")
    await room.get_by_role("button", name="Earlier answer").click()
    await expect(shown(room, "assistant")).to_contain_text("tea")
    await expect(versions).to_contain_text("1 of 2")
    await room.get_by_test_id("composer").press_sequentially("/u")
    await expect(room.get_by_role("option")).to_have_count(3)
    assert await serious_violations(room) == []
    await room.get_by_test_id("composer").fill("")
    await expect(room.get_by_role("button", name="Regenerate")).to_have_count(0)
    await room.reload()
    await ready(room)
    await expect(shown(room, "assistant")).to_have_text([re.compile("coffee")])


async def test_an_earlier_answer_is_hidden_also_where_its_message_is_not_loaded_yet(
    room: Page, gateway: FakeGateway
) -> None:
    message = await ask(room, gateway, "what to drink?")
    await gateway.answer(message, "tea")
    await _answered_again(gateway, message, "what to drink?", "coffee")
    gateway.window = 3
    await room.reload()
    await ready(room)
    await expect(shown(room, "assistant")).to_have_text([re.compile("coffee")])
    await room.get_by_test_id("earlier").click()
    await expect(entries(room, "user")).to_have_count(2)
    await expect(shown(room, "user")).to_have_count(1)
    await expect(shown(room, "assistant")).to_have_text([re.compile("coffee")])
    await expect(room.get_by_role("group", name="Versions of the answer")).to_contain_text("2 of 2")


async def test_the_newest_of_three_answers_is_shown_also_where_earlier_ones_arrive_after_it(
    room: Page, gateway: FakeGateway
) -> None:
    message = await ask(room, gateway, "what to drink?")
    await gateway.begin(message)
    await gateway.fail(message, "failed", "Nothing came.")
    await _answered_again(gateway, message, "what to drink?", "coffee")
    await _answered_again(gateway, message, "what to drink?", "cocoa", version="third")
    gateway.window = 5
    await room.reload()
    await ready(room)
    await expect(shown(room, "assistant")).to_have_text([re.compile("cocoa")])
    await expect(shown(room, "error")).to_have_count(0)
    gateway.window = 2
    await room.reload()
    await ready(room)
    await expect(shown(room, "assistant")).to_have_text([re.compile("cocoa")])
    for _ in range(2):
        await room.get_by_test_id("earlier").click()
    await expect(entries(room, "user")).to_have_count(3)
    await expect(shown(room, "assistant")).to_have_text([re.compile("cocoa")])
    await expect(room.get_by_role("group", name="Versions of the answer")).to_contain_text("3 of 3")


async def test_the_last_turn_that_is_left_can_be_answered_again_also_where_it_is_loaded_late(
    room: Page, gateway: FakeGateway
) -> None:
    await gateway.answer(await ask(room, gateway, "one"), "eins")
    message = await ask(room, gateway, "two")
    await gateway.answer(message, "zwei")
    gateway.write("notice", "Taken out.", chat=gateway.chat, code="undone", removed=message)
    gateway.window = 1
    await room.reload()
    await ready(room)
    gateway.window = 4
    await room.get_by_test_id("earlier").click()
    await expect(entries(room, "assistant")).to_have_count(2)
    await expect(entries(room, "assistant").first.get_by_role("button", name="Regenerate")).to_be_visible()


async def test_an_edit_is_sent_for_its_message_and_replaces_the_turn(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "tea in Lonodn")
    await gateway.complete(message, "Where?")
    await room.get_by_role("button", name="Edit").click()
    field = room.get_by_test_id("composer")
    await expect(field).to_have_value("tea in Lonodn")
    await expect(room.get_by_text("You edit your last message.")).to_be_visible()
    await field.press("Escape")
    await expect(field).to_have_value("")
    await room.get_by_role("button", name="Edit").click()
    await send(room, "tea in London")
    frame = await gateway.received("message", 2)
    assert (frame["text"], frame["edits"]) == ("tea in London", message)
    version = gateway.id_of(frame)
    line = gateway.write("user", frame["text"], message_id=version, chat=gateway.chat, replaces=message)
    await gateway.send(line)
    await gateway.complete(version, "Fortnum's.")
    # The page draws once per frame: until then the row of the earlier words may be the only one.
    await expect(shown(room, "user")).to_have_text([re.compile("tea in London")])


async def test_an_turn_that_was_taken_out_is_marked_and_no_longer_offered(
    kept: tuple[Page, FakeGateway],
) -> None:
    room, gateway = kept
    first = await ask(room, gateway, "one")
    await gateway.complete(first, "eins")
    second = await ask(room, gateway, "two")
    await gateway.complete(second, "zwei")
    await gateway.send(
        gateway.write("notice", "Taken out.", chat=gateway.chat, code="undone", removed=second)
    )
    for role in ("user", "assistant"):
        await expect(entries(room, role).last).to_contain_text("Taken out")
        await expect(entries(room, role).first).not_to_contain_text("Taken out")
    await expect(entries(room, "assistant").first.get_by_role("button", name="Regenerate")).to_be_visible()
    await expect(room.get_by_role("button", name="Regenerate")).to_have_count(1)
    assert await room.evaluate(POOR_CONTRAST) == []


async def test_an_exported_conversation_is_saved_by_a_press(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "hello")
    await gateway.complete(message, "hi")
    content = "# Conversation\n\n**You**: <b>hello</b>\n"
    await gateway.send(gateway.write("notice", content, chat=gateway.chat, code="export-md"))
    async with room.expect_download() as saving:
        await room.get_by_role("button", name="Save conversation.md").click()
    saved = await saving.value
    assert saved.suggested_filename == "conversation.md"
    assert Path(await saved.path()).read_text(encoding="utf-8") == content  # noqa: ASYNC240 - a small file
