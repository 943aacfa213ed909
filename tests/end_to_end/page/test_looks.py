"""The page as such: narrow screens, themes, names for every control, contrast."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.accessibility import COLOURS, serious_violations
from tests.end_to_end.page.acts import ask, entries, ready, sign_out
from tests.end_to_end.page.fake_gateway import FakeGateway
from tests.end_to_end.page.probes import NAMELESS, POOR_CONTRAST

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_WIDE = (
    "Averylongwordwithoutanyspace" * 12 + "\n\n```text\n" + "code " * 80 + "\n```\n\n"
    "| a | b | c | d | e | f |\n|---|---|---|---|---|---|\n" + "| a long cell |" * 6 + "\n\n"
    "https://example.org/" + "path/" * 60
)


async def furnish(room: Page, gateway: FakeGateway) -> None:
    """One row of every kind."""
    chat = gateway.chat
    gateway.write("user", "typed", message_id="a", chat=chat)
    rich = "**Bold**, `code`, [link](https://example.org).\n\n> quote\n\n```py\nx\n```\n\n|a|b|\n|-|-|\n|1|2|"
    gateway.write("assistant", rich, message_id="a", chat=chat)
    gateway.write("session", "New conversation", chat=chat)
    gateway.write("user", "spoken", message_id="b", chat=chat, spoken=True)
    gateway.write("error", "It did not work.", message_id="b", chat=chat, code="model")
    gateway.write("notice", "A notice.", chat=chat)
    await room.reload()
    await ready(room)
    message = await ask(room, gateway, "may you?")
    await gateway.begin(message)
    question = {"interaction_id": "i", "tool_name": "search", "reasoning": "Why", "timeout_s": 600.0}
    await gateway.event("approval_required", message, options=["Allow", "Deny"], **question)
    await gateway.say(message, "Words")
    await expect(entries(room, "approval")).to_be_visible()


async def test_nothing_scrolls_sideways(room: Page, gateway: FakeGateway) -> None:
    await furnish(room, gateway)
    gateway.write("user", _WIDE, message_id="w", chat=gateway.chat)
    gateway.write("assistant", _WIDE, message_id="w", chat=gateway.chat)
    await room.reload()
    await ready(room)
    await expect(entries(room, "assistant").last).to_be_visible()
    overflow = "node => node.scrollWidth - node.clientWidth"
    for width in (320, 360, 768, 1600):
        await room.set_viewport_size({"width": width, "height": 640})
        for selector in ("html", "#scroller", ".top", "#composer"):
            assert await room.locator(selector).evaluate(overflow) <= 0, (width, selector)
        await room.get_by_test_id("mic").click()
        await expect(room.get_by_role("timer")).to_be_visible()
        for selector in ("html", "#composer-card"):
            assert await room.locator(selector).evaluate(overflow) <= 0, (width, selector)
        for name in ("mic", "new-chat", "theme"):
            box = await room.get_by_test_id(name).bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        await room.keyboard.press("Escape")
        await expect(room.get_by_role("timer")).to_be_hidden()


async def test_text_has_enough_contrast_and_axe_finds_no_serious_violation(
    room: Page, gateway: FakeGateway
) -> None:
    theme = "document.documentElement.dataset.theme"

    async def is_accessible() -> None:
        schemes: tuple[tuple[str, tuple[str, ...]], ...] = (("dark", ()), ("light", COLOURS))
        for scheme, rules in schemes:
            await room.evaluate(f"scheme => {{ {theme} = scheme; }}", scheme)
            assert await room.evaluate(POOR_CONTRAST) == [], scheme
            for width in (360, 1280):
                await room.set_viewport_size({"width": width, "height": 800})
                assert await serious_violations(room, rules) == [], (scheme, width)

    await room.evaluate("localStorage.setItem('parlour.theme', 'dark')")
    await furnish(room, gateway)
    assert await room.evaluate(theme) == "dark"
    await is_accessible()
    await room.set_viewport_size({"width": 1100, "height": 800})
    await sign_out(room)
    await expect(room.get_by_test_id("token-input")).to_be_visible()
    await is_accessible()


async def test_axe_finds_what_is_wrong(room: Page) -> None:
    await room.evaluate("document.body.insertAdjacentHTML('beforeend', '<button></button>')")
    assert any(found.startswith("button-name: ") for found in await serious_violations(room))


async def test_the_theme_follows_the_system_and_then_the_reader(room: Page) -> None:
    dark = "getComputedStyle(document.body).backgroundColor === 'rgb(17, 21, 20)'"
    assert not await room.evaluate(dark)
    await room.emulate_media(color_scheme="dark")
    assert await room.evaluate(dark)
    await room.get_by_role("button", name="Switch to light theme").click()
    assert not await room.evaluate(dark)
    await room.reload()
    assert not await room.evaluate(dark)


async def test_every_control_has_a_name_the_log_is_a_log_and_motion_stops_for_those_who_ask(
    room: Page, gateway: FakeGateway
) -> None:
    await room.emulate_media(reduced_motion="reduce")
    await furnish(room, gateway)
    moving = "document.getAnimations().filter((one) => one.playState === 'running').length"
    assert await room.evaluate(moving) == 0
    assert await room.evaluate(NAMELESS) == []
    log = room.get_by_role("log", name="Conversation")
    await expect(log).to_have_attribute("aria-live", "polite")
    await expect(log).to_have_attribute("aria-busy", "false")
    await expect(room.get_by_test_id("status")).to_have_attribute("role", "status")
    await expect(room.get_by_test_id("mic")).to_have_accessible_name("Record a voice note")
    await expect(room.get_by_test_id("composer")).to_have_accessible_name("Message")
    assert await room.evaluate("document.documentElement.lang") == "en"


async def test_a_keyboard_reader_sees_the_focus(room: Page) -> None:
    seen = set()
    for _ in range(16):
        await room.keyboard.press("Tab")
        # The field itself has no ring: the card around it changes its colour.
        look = "(node) => [node.id || node.className, getComputedStyle(node).outlineStyle]"
        name, outline = await room.evaluate(f"({look})(document.activeElement)")
        if name:
            assert outline != "none" or name == "input", name
            seen.add(name)
    assert {"scroller", "skip", "theme", "mic", "input", "chip"} <= seen


async def test_the_title_tells_when_an_answer_is_written(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    await expect(room).to_have_title("Parlour")
    message = await ask(room, gateway, "hello")
    await gateway.begin(message)
    await expect(room).to_have_title("… Parlour")
    await gateway.complete(message, "Hello.")
    await expect(room).to_have_title("Parlour")


async def test_rows_carry_their_time_and_day(room: Page, gateway: FakeGateway) -> None:
    gateway.write("user", "long ago", message_id="o", chat=gateway.chat, at=1_577_880_000.0)
    gateway.write("notice", "today", chat=gateway.chat)
    await room.reload()
    await expect(room.locator(".day")).to_have_text(["Wednesday, 1 January 2020", "Today"])
    await expect(entries(room, "user").locator("time")).to_have_text("12:00")
    await expect(entries(room, "user").locator("time")).to_have_attribute(
        "datetime", "2020-01-01T12:00:00.000Z"
    )


async def test_only_the_conversation_scrolls_and_never_the_page(room: Page, gateway: FakeGateway) -> None:
    for number in range(12):
        gateway.write("user", "spoken", message_id=f"m_{number}", chat=gateway.chat, spoken=True)
        gateway.write("assistant", "One\n\nTwo", message_id=f"m_{number}", chat=gateway.chat)
    await room.reload()
    await ready(room)
    await expect(entries(room, "user")).to_have_count(12)
    # A row that moves into its place holds more together than one that has arrived.
    await room.locator("#log").evaluate(
        "log => Promise.all(log.getAnimations({ subtree: true }).map((one) => one.finished))"
    )
    # As focus, a search in the page and a screen reader's cursor do.
    await room.evaluate("document.querySelectorAll('.row .visually-hidden')[20].scrollIntoView()")
    assert await room.evaluate("document.documentElement.scrollTop") == 0
    assert await room.evaluate("document.documentElement.scrollHeight - window.innerHeight") <= 0
