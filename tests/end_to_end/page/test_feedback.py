"""The two thumbs below an answer on the page."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, entries, ready
from tests.end_to_end.page.fake_gateway import FakeGateway
from tests.end_to_end.page.test_read_aloud import answered

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_thumb_is_sent_changed_and_taken_back_and_is_shown_with_the_history(
    room: Page, gateway: FakeGateway
) -> None:
    row = await answered(room, gateway)
    message_id = await row.get_attribute("data-message-id")
    good, bad = row.get_by_role("button", name="Good answer"), row.get_by_role("button", name="Bad answer")
    await expect(good).to_have_attribute("aria-pressed", "false")
    await good.focus()
    await room.keyboard.press("Enter")
    frame = await gateway.received("feedback")
    assert (frame["message_id"], frame["up"], frame["on"]) == (message_id, True, True)
    await bad.click()
    frame = await gateway.received("feedback", 2)
    assert (frame["up"], frame["on"]) == (False, True)
    await expect(good).to_have_attribute("aria-pressed", "false")
    gateway.chats[gateway.chat].entries[-1]["feedback"] = "down"
    await room.reload()
    await ready(room)
    bad = entries(room, "assistant").last.get_by_role("button", name="Bad answer")
    await expect(bad).to_have_attribute("aria-pressed", "true")
    await bad.click()
    frame = await gateway.received("feedback", 3)
    assert (frame["up"], frame["on"]) == (False, False)
    await expect(bad).to_have_attribute("aria-pressed", "false")


async def test_an_answer_that_is_being_written_or_is_not_kept_has_no_thumbs(
    kept: tuple[Page, FakeGateway],
) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "tides?")
    await gateway.begin(message)
    await gateway.say(message, "Water")
    row = entries(room, "assistant").last
    await expect(row).to_contain_text("Water")
    await expect(row.get_by_role("button", name="Good answer")).to_have_count(0)
    await gateway.complete(message, "Water.")
    await expect(row.get_by_role("button", name="Good answer")).to_have_count(1)
    await gateway.send(gateway.write("session", "Off the record", chat=gateway.chat, code="otr"))
    row = await answered(room, gateway, "Forgotten.")
    await expect(row.get_by_role("button", name="Good answer")).to_have_count(0)
