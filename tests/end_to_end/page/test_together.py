"""Messages that are answered together, on the page."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, entries
from tests.end_to_end.page.fake_gateway import FakeGateway

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_message_that_joins_a_turn_is_marked_and_the_answer_comes_after_it(
    room: Page, gateway: FakeGateway
) -> None:
    first = await ask(room, gateway, "the red one")
    second = await ask(room, gateway, "no, the blue one")
    await gateway.begin(first, text="the red one")
    await gateway.event("message_joined", first, joined=second, reply_handle="")
    joined = entries(room, "user").last
    await expect(joined).to_contain_text("Answered together")
    await expect(joined).to_have_attribute("data-state", "answering")
    gateway.chats[gateway.chat].waiting.clear()
    await gateway.send(
        gateway.write("user", "no, the blue one", message_id=second, chat=gateway.chat, turn=first)
    )
    await gateway.complete(first, "The blue one.")
    await expect(joined).to_have_attribute("data-state", "answered")
    await expect(room.get_by_test_id("entry").last).to_contain_text("The blue one.")
    # The history says it too.
    await room.reload()
    await expect(entries(room, "user").last).to_contain_text("Answered together")
    await expect(room.get_by_test_id("entry").last).to_contain_text("The blue one.")


async def test_a_further_version_replaces_all_messages_of_the_turn_and_an_edit_has_the_words_of_all(
    kept: tuple[Page, FakeGateway],
) -> None:
    room, gateway = kept
    first = await ask(room, gateway, "the red one")
    second = await ask(room, gateway, "no, the blue one")
    await gateway.begin(first, text="the red one")
    await gateway.event("message_joined", first, joined=second, reply_handle="")
    gateway.chats[gateway.chat].waiting.clear()
    await gateway.send(
        gateway.write("user", "no, the blue one", message_id=second, chat=gateway.chat, turn=first)
    )
    await gateway.complete(first, "The blue one.")
    both = "the red one\nno, the blue one"
    await room.get_by_role("button", name="Edit").click()
    await expect(room.get_by_test_id("composer")).to_have_value(both)
    await room.get_by_test_id("composer").press("Escape")
    users = entries(room, "user").locator("visible=true")
    for line in (
        gateway.write("user", both, message_id="m_again", chat=gateway.chat, replaces=first),
        gateway.write("assistant", "Blue, then.", message_id="m_again", chat=gateway.chat),
    ):
        await gateway.send(line)
    await expect(users).to_have_text([re.compile("the red one\\s+no, the blue one")])
    await room.get_by_role("button", name="Earlier answer").click()
    await expect(users).to_have_count(2)
    removed = gateway.write("notice", "Taken out.", code="undone", chat=gateway.chat, removed=first)
    await gateway.send(removed)
    await expect(entries(room, "user").locator("visible=true").get_by_text("Taken out")).to_have_count(2)
