"""Leads a page that is open to an empty conversation, as it would be after a choice in the list."""

from __future__ import annotations

from itertools import count

from playwright.async_api import Page

from tests.end_to_end.page.fake_gateway import FakeGateway

_NUMBERS = count(1)
_CLEAR_FIELD = """() => {
  const field = document.querySelector('[data-testid="composer"]');
  field.value = '';
  field.dispatchEvent(new Event('input', { bubbles: true }));
}"""
_EMPTY = """chat => localStorage.getItem('parlour.chat') === chat
  && document.querySelector('[data-testid="status"]').dataset.state === 'ready'
  && document.querySelector('[data-testid="entry"]') === null"""


async def begin_another_chat(page: Page, gateway: FakeGateway) -> None:
    """The gateway forgets all conversations. It has this page only, and has all frames that the page sent."""
    await page.evaluate(_CLEAR_FIELD)
    (client,) = gateway.clients
    for noted in (gateway.chats, gateway.hellos, gateway.frames, gateway.asked):
        noted.clear()
    gateway.refusal = lambda _frame: None
    client.chat, client.after = f"c_another_{next(_NUMBERS)}", 0
    await gateway.greet(client)
    await page.wait_for_function(_EMPTY, arg=client.chat)
