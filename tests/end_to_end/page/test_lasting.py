"""What survives: broken connections, reloads, several tabs, a gateway that forgot the chat."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, entries, ready, send, sign_out
from tests.end_to_end.page.fake_gateway import FakeGateway

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_an_unaccepted_message_is_sent_again_with_the_same_key(
    room: Page, gateway: FakeGateway
) -> None:
    gateway.accepting = False
    await send(room, "are you there")
    first = await gateway.received("message")
    await expect(entries(room, "user")).to_have_attribute("data-state", "sending")
    gateway.accepting = True
    gateway.cut()
    again = await gateway.received("message", 2)
    assert again == first
    await expect(entries(room, "user")).to_have_attribute("data-state", "queued")
    await expect(entries(room, "user")).to_have_count(1)
    assert await room.evaluate("localStorage.getItem('parlour.outbox')") is None


async def test_messages_written_while_offline_go_out_in_order(room: Page, gateway: FakeGateway) -> None:
    gateway.down = True
    gateway.cut()
    await expect(room.get_by_test_id("status")).to_contain_text("Reconnecting")
    await expect(room.locator("#banner")).to_be_visible()
    await send(room, "first")
    await send(room, "second")
    await room.get_by_test_id("new-chat").click()
    await expect(room.get_by_role("alert")).to_contain_text("Not connected")
    gateway.down = False
    await room.evaluate("window.dispatchEvent(new Event('online'))")
    await gateway.received("message", 2)
    assert [frame["text"] for frame in gateway.of("message")] == ["first", "second"]
    assert gateway.of("command") == []
    await expect(room.locator("#banner")).to_be_hidden()


async def test_a_message_written_offline_survives_a_reload(room: Page, gateway: FakeGateway) -> None:
    gateway.accepting = False
    await send(room, "keep me")
    first = await gateway.received("message")
    await room.get_by_test_id("composer").fill("a draft")
    gateway.accepting = True
    await room.reload()
    again = await gateway.received("message", 2)
    assert again["client_id"] == first["client_id"]
    await expect(entries(room, "user")).to_have_attribute("data-state", "queued")
    await expect(room.get_by_test_id("composer")).to_have_value("a draft")


async def test_a_lost_acknowledgement_does_not_show_the_message_twice(
    room: Page, gateway: FakeGateway
) -> None:
    gateway.accepting = False
    await send(room, "once")
    frame = await gateway.received("message")
    # The gateway had taken it after all; only its word was lost.
    gateway.accepting = True
    chat = gateway.chats[gateway.chat]
    chat.known[frame["client_id"]] = "m_once"
    gateway.write("user", "once", message_id="m_once", chat=gateway.chat)
    gateway.write("assistant", "Yes, once.", message_id="m_once", chat=gateway.chat)
    gateway.cut()
    await gateway.received("message", 2)
    await expect(entries(room, "user")).to_have_count(1)
    await expect(entries(room, "user")).to_have_attribute("data-state", "answered")
    await expect(entries(room, "assistant")).to_have_count(1)


async def test_an_unavailable_store_is_asked_again_with_the_same_key(
    room: Page, gateway: FakeGateway
) -> None:
    gateway.refusal = lambda _frame: {"code": "unavailable", "message": "The disk is full."}
    await send(room, "patience")
    first = await gateway.received("message")
    await expect(entries(room, "user")).to_contain_text("The disk is full. Trying again")
    gateway.refusal = lambda _frame: None
    again = await gateway.received("message", 2)
    assert again == first
    await expect(entries(room, "user")).to_have_attribute("data-state", "queued")


async def test_a_reload_brings_the_conversation_back(room: Page, gateway: FakeGateway) -> None:
    await gateway.answer(await ask(room, gateway, "one"), "First answer.")
    message = await ask(room, gateway, "two")
    await gateway.begin(message)
    await gateway.say(message, "Half of it")
    waiting = await ask(room, gateway, "three")
    await room.reload()
    await ready(room)
    assert gateway.hellos[-1]["chat"] == gateway.chat
    assert gateway.hellos[-1]["after"] == 0
    rows = room.get_by_test_id("entry")
    texts = ["one", "First answer.", "two", "Half of it", "three"]
    await expect(rows).to_have_count(5)
    for index, text in enumerate(texts):
        await expect(rows.nth(index)).to_contain_text(text)
    await gateway.say(message, ", and the rest")
    await gateway.complete(message, "Half of it, and the rest")
    await gateway.answer(waiting, "Third answer.")
    await expect(rows).to_have_count(6)
    await expect(rows.nth(3)).to_contain_text("and the rest")
    await expect(rows.nth(5)).to_contain_text("Third answer.")


async def test_a_reconnect_asks_only_for_what_is_missing(room: Page, gateway: FakeGateway) -> None:
    message = await ask(room, gateway, "slow one")
    await gateway.begin(message)
    await gateway.say(message, "It beg")
    await expect(entries(room, "assistant")).to_contain_text("It beg")
    gateway.down = True
    gateway.cut()
    await expect(room.locator("#banner")).to_be_visible()
    gateway.chats[gateway.chat].writing.clear()
    gateway.write("assistant", "It began and ended.", message_id=message, chat=gateway.chat)
    gateway.down = False
    await room.evaluate("window.dispatchEvent(new Event('online'))")
    await ready(room)
    assert gateway.hellos[-1]["after"] == 1
    await expect(entries(room, "assistant")).to_have_count(1)
    await expect(entries(room, "assistant")).to_contain_text("It began and ended.")
    await expect(room.get_by_test_id("stop")).to_be_hidden()


async def test_two_tabs_show_the_same_conversation_live(room: Page, gateway: FakeGateway) -> None:
    other = await room.context.new_page()
    await other.goto(gateway.origin)
    await ready(other)
    assert gateway.hellos[-1]["chat"] == gateway.chat
    message = await ask(room, gateway, "from the first tab")
    await expect(entries(other, "user")).to_contain_text("from the first tab")
    await gateway.begin(message)
    await gateway.say(message, "To both")
    await expect(entries(other, "assistant")).to_contain_text("To both")
    await gateway.complete(message, "To both of you.")
    for tab in (room, other):
        await expect(entries(tab, "assistant")).to_contain_text("To both of you.")
        await expect(tab.get_by_test_id("entry")).to_have_count(2)
    await gateway.answer(await ask(other, gateway, "and back"), "Heard.")
    await expect(entries(room, "user")).to_have_count(2)
    await expect(entries(room, "assistant").last).to_contain_text("Heard.")


async def test_signing_out_signs_out_every_tab(room: Page, gateway: FakeGateway) -> None:
    other = await room.context.new_page()
    await other.goto(gateway.origin)
    await ready(other)
    await sign_out(other)
    await expect(room.get_by_test_id("token-input")).to_be_visible()


async def test_a_chat_that_the_gateway_does_not_know_is_begun_again(room: Page, gateway: FakeGateway) -> None:
    await gateway.answer(await ask(room, gateway, "old"), "Old answer.")
    old = gateway.chat
    gateway.chats.clear()
    gateway.unknown_chats.add(old)
    gateway.cut()
    await gateway.greeted(3)
    await ready(room)
    await expect(room.get_by_test_id("entry")).to_have_count(0)
    assert [hello["chat"] for hello in gateway.hellos] == ["latest", old, "latest"]


async def test_an_entry_that_comes_twice_is_shown_once(room: Page, gateway: FakeGateway) -> None:
    message = await ask(room, gateway, "twice")
    await gateway.begin(message)
    await gateway.complete(message, "An answer.")
    for entry in gateway.chats[gateway.chat].entries:
        await gateway.send(entry)
    await gateway.send(gateway.write("notice", "end", chat=gateway.chat))
    await expect(entries(room, "notice")).to_be_visible()
    await expect(room.get_by_test_id("entry")).to_have_count(3)
