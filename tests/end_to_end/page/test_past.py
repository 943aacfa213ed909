"""What was said before, here and in other browsers; and a link that signs in."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, entries, ready, send, sign_in
from tests.end_to_end.page.fake_gateway import TOKEN, FakeGateway
from tests.support.browser_fixture import Watch

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_another_browser_with_the_token_shows_the_same_conversation(
    room: Page, gateway: FakeGateway, phone: Page
) -> None:
    await gateway.answer(await ask(room, gateway, "on my phone"), "Heard on the phone.")
    await phone.goto(gateway.origin)
    await sign_in(phone)
    await expect(entries(phone, "assistant")).to_contain_text("Heard on the phone.")
    await send(phone, "on my phone")
    await expect(entries(room, "user").last).to_contain_text("on my phone")


async def test_an_older_conversation_is_chosen_from_the_list(room: Page, gateway: FakeGateway) -> None:
    gateway.write("user", "The first one", chat="c_old")
    gateway.write("assistant", "Still here.", chat="c_old")
    gateway.write("user", "The second one", chat=next(iter(gateway.chats)))
    await room.reload()
    await ready(room)
    await room.get_by_test_id("chats").click()
    await room.get_by_role("button", name="The first one").first.click()
    await expect(entries(room, "assistant")).to_contain_text("Still here.")
    await expect(entries(room, "user")).to_contain_text("The first one")
    assert gateway.hellos[-1]["chat"] == "c_old"
    assert gateway.hellos[-1]["after"] == 0


async def test_a_list_that_comes_while_a_title_is_written_waits_for_it(
    room: Page, gateway: FakeGateway
) -> None:
    gateway.write("user", "The first one", chat="c_old")
    gateway.write("user", "The second one", chat=next(iter(gateway.chats)))
    await room.reload()
    await ready(room)
    await room.get_by_test_id("chats").click()
    await room.get_by_role("button", name="Rename The first one").click()
    await room.get_by_label("New title").fill("The very f")
    gateway.write("user", "A third one", chat="c_new")
    gateway.cut()
    await gateway.wait(lambda: [frame["type"] for frame in gateway.asked] == ["chats"] * 2, "a second list")
    # What follows the list on the connection is shown.
    await gateway.send(gateway.write("notice", "after it", chat=gateway.hellos[-1]["chat"]))
    await expect(entries(room, "notice")).to_have_count(1)
    await expect(room.get_by_label("New title")).to_have_value("The very f")
    await room.get_by_role("button", name="Cancel").click()
    await expect(room.get_by_role("dialog").get_by_role("status")).to_have_text("3 conversations")
    await expect(room.get_by_role("button", name="Rename A third one")).to_be_visible()
    await expect(room.get_by_label("Search conversations")).to_be_focused()
    # Who searches meanwhile sees a list.
    await room.get_by_role("button", name="Rename A third one").click()
    await room.get_by_label("Search conversations").fill("second")
    await expect(room.get_by_label("New title")).to_have_count(0)
    await expect(room.get_by_role("button", name="Rename A third one")).to_be_visible()


async def test_a_message_on_its_way_is_not_sent_to_another_conversation(
    room: Page, gateway: FakeGateway
) -> None:
    gateway.write("user", "The first one", chat="c_old")
    gateway.write("user", "The second one", chat=next(iter(gateway.chats)))
    await room.reload()
    gateway.accepting = False
    await send(room, "not for the old one")
    await gateway.received("message")
    hellos = len(gateway.hellos)
    await room.get_by_test_id("chats").click()
    await room.get_by_role("button", name="The first one").first.click()
    await expect(room.get_by_role("alert")).to_contain_text("still on its way")
    assert len(gateway.hellos) == hellos


async def test_earlier_lines_come_when_they_are_asked_for_and_the_reader_stays_where_they_were(
    page: Page, gateway: FakeGateway, watch: Watch
) -> None:
    gateway.window = 10
    for number in range(1, 13):
        gateway.write("user", f"question {number}", message_id=f"m_{number}", chat="c_1")
        gateway.write("assistant", f"answer {number} " + "word " * 60, message_id=f"m_{number}", chat="c_1")
    await page.goto(gateway.origin)
    await sign_in(page)
    await expect(entries(page, "user")).to_have_count(5)
    await page.get_by_test_id("earlier").scroll_into_view_if_needed()
    line = entries(page, "user").first
    before = await line.bounding_box()
    await page.get_by_test_id("earlier").click()
    await expect(entries(page, "user")).to_have_count(10)
    await expect(page.get_by_test_id("earlier")).to_have_text("Show earlier messages")
    after = await entries(page, "user").filter(has_text="question 8").bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 60
    await page.get_by_test_id("earlier").click()
    await expect(entries(page, "user")).to_have_count(12)
    await expect(page.get_by_test_id("earlier")).to_be_hidden()
    texts = await entries(page, "user").locator(".text").all_inner_texts()
    assert texts == [f"question {number}" for number in range(1, 13)]
    states = await entries(page, "user").evaluate_all("nodes => nodes.map((node) => node.dataset.state)")
    assert set(states) == {"answered"}
    assert [frame["before"] for frame in gateway.asked if frame["type"] == "earlier"] == [15, 5]
    assert watch.complaints == []


async def test_a_link_signs_in_and_its_token_leaves_the_address_at_once(
    page: Page, gateway: FakeGateway, watch: Watch
) -> None:
    watch.list_requests(page.context)
    await page.goto(f"{gateway.origin}/#token={TOKEN}")
    await ready(page)
    assert await page.evaluate("location.href") == f"{gateway.origin}/"
    assert await page.evaluate("localStorage.getItem('parlour.token')") == TOKEN
    assert watch.requests
    assert [url for url in watch.requests if TOKEN in url.partition("#")[0]] == []
    await page.reload()
    await ready(page)


async def test_a_link_with_a_wrong_token_costs_no_one_their_own(room: Page, gateway: FakeGateway) -> None:
    await room.evaluate("location.hash = '#token=somebody-elses'")
    await gateway.wait(lambda: gateway.hellos[-1]["token"] == TOKEN and len(gateway.hellos) == 3, "its own")
    await expect(room.get_by_role("alert")).to_contain_text("still signed in")
    await ready(room)
    assert [hello["token"] for hello in gateway.hellos] == [TOKEN, "somebody-elses", TOKEN]
    assert await room.evaluate("localStorage.getItem('parlour.token')") == TOKEN


async def test_a_wrong_link_alone_asks_for_the_token(page: Page, gateway: FakeGateway) -> None:
    await page.goto(f"{gateway.origin}/#token=%E0%A4%A")
    await expect(page.get_by_test_id("token-input")).to_be_visible()
    assert gateway.hellos == []
    await page.goto(f"{gateway.origin}/#token=wrong")
    await expect(page.locator("#signin-message")).to_contain_text("not right")
