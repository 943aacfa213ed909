"""Messages that are answered together, on the page."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, entries, send
from tests.end_to_end.page.fake_gateway import FakeGateway

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_message_that_joins_a_turn_is_marked_and_the_answer_comes_after_it(
    room: Page, gateway: FakeGateway
) -> None:
    first = await ask(room, gateway, "the red one")
    await gateway.event(first, "turn_started")
    await send(room, "no, the blue one")
    second = await gateway.accepted("no, the blue one")
    await gateway.event(first, "message_joined", joined=second, reply_handle="")
    joined = entries(room, "user").last
    await expect(joined).to_contain_text("Answered together")
    await expect(joined).to_have_attribute("data-state", "answering")
    await gateway.answer(first, "The blue one.")
    await expect(joined).to_have_attribute("data-state", "answered")
    await expect(room.get_by_test_id("entry").last).to_contain_text("The blue one.")
    await room.reload()
