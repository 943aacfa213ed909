"""Two people on one real gateway, each in a separate browser: invitations, conversations, signing out."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.accessibility import COLOURS, serious_violations
from tests.end_to_end.page.acts import entries, ready, send, sign_in
from tests.end_to_end.page.worker_port import port_setting
from tests.support.page_people import Client, OpenPage, open_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def _join(page: Page, gateway: OpenPage, name: str) -> None:
    await page.goto(f"{gateway.url}/#invitation={await gateway.invite(name)}")
    await page.get_by_role("button", name="Join").click()
    await ready(page)


async def test_two_people_join_and_neither_sees_the_other(page: Page, phone: Page, tmp_path: Path) -> None:
    async with open_page(tmp_path, port_setting()) as gateway:
        code = await gateway.invite("Ann")
        await page.goto(f"{gateway.url}/#invitation={code}")
        await expect(page.get_by_role("heading", name="You are invited")).to_be_visible()
        await expect(page.get_by_test_id("token-input")).to_be_hidden()
        assert await page.evaluate("location.href") == f"{gateway.url}/"
        await page.get_by_role("button", name="Join").click()
        await ready(page)
        await send(page, "only for Ann")
        await expect(entries(page, "assistant")).to_contain_text("You said: only for Ann")
        await _join(phone, gateway, "Ben")
        await expect(phone.get_by_text("Make yourself at home.")).to_be_visible()
        await send(phone, "only for Ben")
        await expect(entries(phone, "assistant")).to_contain_text("You said: only for Ben")
        await expect(entries(page, "user")).to_have_count(1)
        await page.reload()
        await ready(page)
        await expect(entries(page, "user")).to_contain_text("only for Ann")


async def _follow_invitation(page: Page, code: str) -> None:
    # Afterwards, as what navigates ends the call that it is made in.
    await page.evaluate("code => { setTimeout(() => { location.hash = `#invitation=${code}`; }); }", code)


async def test_a_used_invitation_leaves_the_browser_as_it_was(page: Page, tmp_path: Path) -> None:
    async with open_page(tmp_path, port_setting()) as gateway:
        code = await gateway.invite("Ann")
        await page.goto(f"{gateway.url}/#invitation={code}")
        await page.get_by_role("button", name="Join").click()
        await ready(page)
        token = await page.evaluate("localStorage.getItem('parlour.token')")
        await _follow_invitation(page, code)
        await expect(page.get_by_text("signed in already")).to_be_visible()
        await page.get_by_role("button", name="Join").click()
        await expect(page.get_by_role("alert")).to_contain_text("was used already")
        await ready(page)
        assert await page.evaluate("localStorage.getItem('parlour.token')") == token


async def test_an_invitation_is_refused_without_costing_anything(page: Page, tmp_path: Path) -> None:
    async with open_page(tmp_path, port_setting()) as gateway:
        await page.goto(gateway.url)
        await sign_in(page, gateway.owner_token)
        code = await gateway.invite("Ann")
        await _follow_invitation(page, code)
        await page.get_by_role("button", name="Stay as I am").click()
        await ready(page)
        assert await page.evaluate("localStorage.getItem('parlour.token')") == gateway.owner_token
        assert len(await gateway.store.page.people.open_invitations(now=0)) == 1


async def test_what_one_person_left_in_the_browser_is_not_sent_by_the_next(
    page: Page, tmp_path: Path
) -> None:
    async with open_page(tmp_path, port_setting()) as gateway:
        await page.goto(gateway.url)
        await sign_in(page, gateway.owner_token)
        await page.get_by_test_id("composer").fill("a draft of the owner")
        await page.evaluate(
            """() => localStorage.setItem('parlour.outbox', JSON.stringify(
                 [{ clientId: 'w_1', text: 'never sent', at: 1 }]))"""
        )
        await _join(page, gateway, "Ann")
        await expect(page.get_by_test_id("composer")).to_have_value("")
        await expect(entries(page, "user")).to_have_count(0)
        person = await gateway.id_of("Ann")
        assert await gateway.store.threads_of("web", "local", limit=9, chat=f"{person}.") == ()
        assert await page.evaluate("localStorage.getItem('parlour.outbox')") is None


async def test_a_removed_person_reads_that_the_browser_was_signed_out(page: Page, tmp_path: Path) -> None:
    async with open_page(tmp_path, port_setting()) as gateway:
        await _join(page, gateway, "Ann")
        await send(page, "hello")
        await expect(entries(page, "assistant")).to_contain_text("You said: hello")
        person = await gateway.id_of("Ann")
        await gateway.remove(person)
        await expect(page.get_by_role("alert")).to_contain_text("This browser was signed out")
        await expect(page.get_by_test_id("log")).to_be_hidden()
        assert await page.evaluate("localStorage.getItem('parlour.token')") is None


async def test_conversations_are_searched_renamed_and_deleted_by_keyboard(page: Page, tmp_path: Path) -> None:
    async with open_page(tmp_path, port_setting()) as gateway:
        await _join(page, gateway, "Ann")
        await send(page, "About the tides")
        await expect(entries(page, "assistant")).to_contain_text("You said: About the tides")
        await page.evaluate("localStorage.removeItem('parlour.chat')")
        await _another_chat(page, gateway, "About the moon")
        await page.get_by_test_id("chats").press("Enter")
        dialog = page.get_by_role("dialog", name="Conversations")
        await expect(dialog.get_by_role("status")).to_have_text("2 conversations")
        await expect(dialog.get_by_label("Search conversations")).to_be_focused()
        await page.keyboard.type("tides")
        await expect(dialog.get_by_role("status")).to_have_text("1 conversation")
        await dialog.get_by_role("button", name="Rename About the tides").press("Enter")
        await expect(dialog.get_by_label("New title")).to_be_focused()
        await page.keyboard.type("Tides of March")
        await page.keyboard.press("Enter")
        await expect(dialog.get_by_role("button", name="Rename Tides of March")).to_be_visible()
        # The words are in a message of it.
        await expect(dialog.get_by_role("listitem")).to_contain_text("You said: About the tides")
        await dialog.get_by_label("Search conversations").fill("")
        await expect(dialog.get_by_role("status")).to_have_text("2 conversations")
        await dialog.get_by_role("button", name="Delete About the moon").press("Enter")
        await expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
        await dialog.get_by_role("button", name="Delete", exact=True).press("Enter")
        await expect(dialog.get_by_role("status")).to_have_text("1 conversation")
        await page.keyboard.press("Escape")
        await expect(dialog).to_be_hidden()
        await expect(page.get_by_test_id("chats")).to_be_focused()
        await ready(page)
        await page.get_by_test_id("chats").click()
        await dialog.get_by_role("button", name="Tides of March").first.click()
        await expect(entries(page, "user")).to_contain_text("About the tides")
        await expect(page.locator("#chat-title")).to_have_text("Tides of March")


async def test_a_person_changes_their_name_and_brings_another_device(
    page: Page, phone: Page, tmp_path: Path
) -> None:
    async with open_page(tmp_path, port_setting()) as gateway:
        await _join(page, gateway, "Ann")
        await gateway.invite("Ben")
        await page.get_by_test_id("settings").click()
        dialog = page.get_by_role("dialog", name="Settings")
        await dialog.get_by_label("Your name").fill("ben")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("another person has this name")
        await dialog.get_by_label("Your name").fill("Anna")
        await dialog.get_by_role("button", name="Save").click()
        await gateway.named("Anna")
        await dialog.get_by_role("button", name="Link for another device").click()
        link = await dialog.get_by_role("textbox", name="Link for another device").input_value()
        await phone.goto(link)
        await phone.get_by_role("button", name="Join").click()
        await ready(phone)
        await dialog.get_by_role("button", name="Close settings").click()
        await page.get_by_test_id("settings").click()
        await dialog.get_by_role("button", name="Sign out Chrome on Linux").click()
        await expect(phone.get_by_role("alert")).to_contain_text("This browser was signed out")
        await expect(dialog.get_by_role("button", name="Sign out Chrome on Linux")).to_have_count(0)
        await dialog.get_by_test_id("sign-out").click()
        await expect(page.get_by_test_id("token-input")).to_be_visible()
        await gateway.no_devices()


async def test_the_new_views_have_no_serious_obstacle(page: Page, tmp_path: Path) -> None:
    async def has_no_obstacle() -> None:
        assert await serious_violations(page) == []
        await page.emulate_media(color_scheme="dark")
        assert await serious_violations(page, COLOURS) == []
        await page.emulate_media(color_scheme="light")

    await page.set_viewport_size({"width": 360, "height": 700})
    async with open_page(tmp_path, port_setting()) as gateway:
        await page.goto(f"{gateway.url}/#invitation={await gateway.invite('Ann')}")
        await expect(page.get_by_role("heading", name="You are invited")).to_be_visible()
        await has_no_obstacle()
        await page.get_by_role("button", name="Join").click()
        await ready(page)
        await send(page, "About the tides, at some length so that the title does not fit")
        await expect(entries(page, "assistant")).to_have_count(1)
        await page.get_by_test_id("chats").click()
        await page.get_by_label("Search conversations").fill("tides")
        await expect(page.locator(".chat-found")).to_contain_text("tides")
        await has_no_obstacle()
        await page.get_by_role("button", name="Delete About").click()
        await has_no_obstacle()
        await page.keyboard.press("Escape")
        await page.get_by_test_id("settings").click()
        await page.get_by_role("button", name="Link for another device").click()
        await expect(page.get_by_role("textbox", name="Link for another device")).to_be_visible()
        await has_no_obstacle()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_the_theme_is_chosen_in_the_settings(page: Page, tmp_path: Path) -> None:
    async with open_page(tmp_path, port_setting()) as gateway:
        await page.goto(gateway.url)
        await sign_in(page, gateway.owner_token)
        await page.get_by_test_id("settings").click()
        dialog = page.get_by_role("dialog", name="Settings")
        await expect(dialog.get_by_text("You are the owner of this bot")).to_be_visible()
        await dialog.get_by_label("Theme").select_option("dark")
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        await dialog.get_by_label("Theme").select_option("")
        assert await page.evaluate("document.documentElement.dataset.theme ?? null") is None
        assert await page.evaluate("localStorage.getItem('parlour.theme')") is None


async def _another_chat(page: Page, gateway: OpenPage, text: str) -> None:
    """A second conversation of the page's person, which the page then shows."""
    token = await page.evaluate("localStorage.getItem('parlour.token')")
    async with Client() as client:
        await client.connect(gateway.url, token)
        await client.say(text)
    await page.reload()
    await ready(page)
    await expect(entries(page, "user")).to_contain_text(text)
