"""Messages that are answered together, on the page."""

from __future__ import annotations

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
