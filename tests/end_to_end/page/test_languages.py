"""The page in every language in a real Chromium: its choice, dates and numbers, and nothing overflows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from adapters.web.pages import PageFiles
from adapters.web.text_tables import added_tables, packaged_tables
from tests.end_to_end.page.accessibility import serious_violations
from tests.end_to_end.page.acts import ask, entries, ready, sign_in
from tests.end_to_end.page.fake_gateway import STATIC, FakeGateway
from tests.end_to_end.page.stoppable_gateway import StoppableGateway
from tests.support.browser_fixture import PATIENCE_MS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_TITLES = {"en": "Settings", "de": "Einstellungen", "fr": "Réglages", "es": "Ajustes"}
_OVERFLOWING = """() => [...document.querySelectorAll('button, h1, h2, h3, label, select, p, .status')]
  .filter((one) => one.checkVisibility() && !one.closest('.visually-hidden'))
  .filter((one) => {
    const { left, right } = one.getBoundingClientRect();
    return left < -1 || right > innerWidth + 1;
  })
  .map((one) => one.outerHTML.slice(0, 200))"""


@asynccontextmanager
async def opened(
    browser: Browser, gateway: FakeGateway | StoppableGateway, locale: str
) -> AsyncIterator[Page]:
    """A signed-in page of a browser with this language."""
    context = await browser.new_context(
        locale=locale,
        timezone_id="UTC",
        viewport={"width": 1100, "height": 740},
        reduced_motion="reduce",
        service_workers="block",
    )
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    await page.goto(gateway.origin)
    await sign_in(page)
    yield page
    await context.close()


@pytest.mark.parametrize("locale", ["en-GB", "de-AT", "fr-FR", "es-MX"])
async def test_the_page_is_whole_in_the_browsers_language(
    browser: Browser, gateway: FakeGateway, locale: str
) -> None:
    language = locale[:2]

    async def is_whole() -> None:
        for width in (360, 1280):
            await page.set_viewport_size({"width": width, "height": 740})
            assert await page.evaluate(_OVERFLOWING) == [], width
        # In both widths it is looked at in one language (test_looks).
        assert await serious_violations(page) == []

    async with opened(browser, gateway, locale) as page:
        assert gateway.hellos[-1]["language"] == language
        await expect(page.locator("html")).to_have_attribute("lang", language)
        message = await ask(page, gateway, "x")
        await gateway.answer(message, "y")
        await expect(entries(page, "assistant")).to_have_count(1)
        await is_whole()
        await page.get_by_role("button", name=_TITLES[language]).click()
        await expect(page.get_by_role("dialog", name=_TITLES[language])).to_be_visible()
        await expect(page.get_by_test_id("sign-out")).to_be_visible()
        await is_whole()


async def test_a_chosen_language_needs_no_new_sign_in_and_stays(
    browser: Browser, gateway: FakeGateway
) -> None:
    async with opened(browser, gateway, "fr") as page:
        await page.get_by_test_id("composer").fill("un brouillon")
        await page.get_by_test_id("settings").click()
        choice = page.locator("#language-choice")
        await expect(choice.locator("option")).to_have_text(
            ["Comme le navigateur", "English", "Deutsch", "Español", "Français"]
        )
        await choice.select_option("de")
        await ready(page)
        await expect(page.locator("html")).to_have_attribute("lang", "de")
        await expect(page.get_by_test_id("status")).to_have_text("Verbunden")
        await expect(page.get_by_test_id("composer")).to_have_value("un brouillon")
        await page.reload()
        await ready(page)
        await expect(page.get_by_test_id("settings")).to_have_attribute("title", "Einstellungen")
        await page.get_by_test_id("settings").click()
        await expect(page.locator("#language-choice")).to_have_value("de")
        await page.locator("#language-choice").select_option("")
        await expect(page.locator("html")).to_have_attribute("lang", "fr")
        await ready(page)


async def test_days_and_numbers_are_written_as_the_language_writes_them(
    browser: Browser, gateway: FakeGateway
) -> None:
    gateway.limits = {**gateway.limits, "text_chars": 2500}
    gateway.write("user", "alt", at=1_577_880_000.0)
    async with opened(browser, gateway, "de") as page:
        await expect(page.locator(".day").first).to_have_text("Mittwoch, 1. Januar 2020")
        await ask(page, gateway, "neu")
        await expect(page.locator(".day").last).to_have_text("Heute")
        await page.get_by_test_id("composer").fill("x" * 3750)
        await expect(page.locator("#counter")).to_have_text("1.250 Zeichen zu viel")


async def test_the_page_is_in_its_language_before_any_script_runs(
    browser: Browser, gateway: FakeGateway
) -> None:
    context = await browser.new_context(locale="es", java_script_enabled=False)
    page = await context.new_page()
    await page.goto(gateway.origin)
    await expect(page.locator("#input")).to_have_attribute("placeholder", "Escribe un mensaje")
    await expect(page.locator(".noscript")).to_contain_text("necesita JavaScript")
    await context.close()


async def test_a_language_of_a_file_is_offered_by_its_name_and_shown_as_text(
    browser: Browser, stoppable: StoppableGateway, tmp_path: Path
) -> None:
    texts = {"language": "العربية", "settings.title": "<b>الإعدادات</b>", "save": "حفظ"}
    (tmp_path / "ar.json").write_text(json.dumps(texts), encoding="utf-8")
    stoppable.pages = PageFiles(STATIC, (*packaged_tables(), *added_tables(tmp_path).tables))
    async with opened(browser, stoppable, "en") as page:
        await page.get_by_test_id("settings").click()
        await page.locator("#language-choice").select_option(label="العربية")
        await expect(page.locator("html")).to_have_attribute("dir", "rtl")
        await ready(page)
        await page.get_by_test_id("settings").click()
        await expect(page.locator("#panel-settings")).to_have_text("<b>الإعدادات</b>")
        await expect(page.get_by_test_id("sign-out")).to_have_text("Sign out of this browser")
        assert await page.evaluate(_OVERFLOWING) == []
