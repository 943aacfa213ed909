"""Files on the page, which cannot be used yet; and a Stop that has nothing else under it."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, entries
from tests.end_to_end.page.fake_gateway import FakeGateway

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_HAND_OVER = """([kind, target, withText]) => {
  const data = new DataTransfer();
  data.items.add(new File(['words'], 'contract.pdf', { type: 'application/pdf' }));
  if (withText) data.setData('text/plain', 'words');
  const options = { bubbles: true, cancelable: true };
  const event = kind === 'paste'
    ? new ClipboardEvent('paste', { ...options, clipboardData: data })
    : new DragEvent(kind, { ...options, dataTransfer: data });
  return !document.querySelector(target).dispatchEvent(event);
}"""
"""Hands a file to an element; whether the page has prevented what the browser would do with it."""


@pytest.mark.parametrize("target", ["#input", "#log", "body"])
async def test_a_dropped_file_does_not_take_the_page_away(room: Page, target: str) -> None:
    await room.get_by_test_id("composer").fill("half a message")
    assert await room.evaluate(_HAND_OVER, ["dragover", target, False])
    assert await room.evaluate(_HAND_OVER, ["drop", target, False])
    await expect(room.get_by_role("alert")).to_contain_text("Files cannot be used here yet")
    await expect(room.get_by_test_id("composer")).to_have_value("half a message")


async def test_a_pasted_file_is_refused_in_words_and_pasted_text_is_not(room: Page) -> None:
    assert await room.evaluate(_HAND_OVER, ["paste", "#input", False])
    await expect(room.get_by_role("alert")).to_contain_text("Files cannot be used here yet")
    assert not await room.evaluate(_HAND_OVER, ["paste", "#input", True])


async def test_on_the_sign_in_card_a_dropped_file_is_refused_too(page: Page, gateway: FakeGateway) -> None:
    await page.goto(gateway.origin)
    assert await page.evaluate(_HAND_OVER, ["drop", "#signin", False])
    await expect(page.locator("#signin-message")).to_contain_text("Files cannot be used here yet")


@pytest.mark.parametrize("width", [380, 1280])
async def test_pressing_stop_twice_starts_nothing(room: Page, gateway: FakeGateway, width: int) -> None:
    await room.set_viewport_size({"width": width, "height": 800})
    message = await ask(room, gateway, "a long story")
    await gateway.begin(message)
    stop = room.get_by_test_id("stop")
    await expect(stop).to_be_visible()
    box = await stop.bounding_box()
    assert box is not None
    where = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    mic = await room.get_by_test_id("mic").bounding_box()
    await room.mouse.click(*where)
    await gateway.received("command")
    await gateway.fail(message, "stopped", "Stopped.", recoverable=False)
    await expect(stop).to_be_hidden()
    assert await room.get_by_test_id("mic").bounding_box() == mic
    await room.mouse.click(*where)
    await expect(room.get_by_test_id("mic")).to_have_attribute("data-state", "idle")
    under = await room.evaluate(
        "([x, y]) => document.elementFromPoint(x, y).closest('button') === null", where
    )
    assert under
    assert len(gateway.of("command")) == 1


async def test_one_stop_leaves_one_line(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "a long story")
    await gateway.begin(message)
    await room.get_by_test_id("stop").click()
    await gateway.received("command")
    await gateway.fail(message, "stopped", "Stopped.", recoverable=False)
    notice = gateway.write("notice", "Stopped 1 message.", chat=gateway.chat, code="stopped")
    await gateway.send(notice)
    await gateway.send(gateway.write("notice", "There is nothing to stop.", chat=gateway.chat))
    await expect(entries(room, "notice")).to_have_text(["There is nothing to stop."])
    await expect(entries(room, "error")).to_have_count(1)
