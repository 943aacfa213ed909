"""The page without network, after an update, and installed: a real Chromium and the real adapter's files."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from adapters.web.pages import PageFiles
from adapters.web.text_tables import packaged_tables
from tests.end_to_end.page.acts import ready, send, sign_in, sign_out
from tests.end_to_end.page.fake_gateway import STATIC, TOKEN
from tests.end_to_end.page.stoppable_gateway import StoppableGateway
from tests.support.browser_fixture import PATIENCE_MS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_STORED = """async () => {
  const names = await caches.keys();
  const urls = [];
  for (const name of names) {
    for (const request of await (await caches.open(name)).keys()) urls.push(new URL(request.url).pathname);
  }
  return { names, urls };
}"""

_UPDATED = """async (name) => {
  const isNew = async () => {
    // The cache first, which a worker makes while it installs: it may begin between the two questions.
    if (!(await caches.has(name))) return false;
    const { installing, waiting, active } = await navigator.serviceWorker.getRegistration();
    return !installing && !waiting && active.state === 'activated';
  };
  while (!(await isNew())) await new Promise((done) => setTimeout(done, 20));
}"""
"""Waits until the worker of this version is the active one."""


@asynccontextmanager
async def profile(browser: Browser, locale: str = "de") -> AsyncIterator[BrowserContext]:
    """A browser profile in which service workers run."""
    context = await browser.new_context(locale=locale, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    yield context
    await context.close()


async def stored(page: Page) -> None:
    """Waits until the worker has stored the page and its files."""
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    await page.wait_for_function("navigator.serviceWorker.controller !== null")


async def test_the_page_opens_without_network_and_recovers(
    browser: Browser, stoppable: StoppableGateway
) -> None:
    async with profile(browser) as context:
        page = await context.new_page()
        await page.goto(stoppable.origin)
        await sign_in(page)
        await stored(page)
        await context.set_offline(True)
        await stoppable.stop()
        await page.reload()
        await expect(page.locator("html")).to_have_attribute("lang", "de")
        # Chromium's emulation reports a change, and not that a document began without network.
        await expect(page.locator("#banner")).to_be_visible()
        await context.set_offline(False)
        await context.set_offline(True)
        await expect(page.locator("#banner-words")).to_contain_text("Du bist offline.")
        await send(page, "später zu senden")
        await page.get_by_test_id("composer").fill("ein Entwurf")
        await page.get_by_test_id("settings").click()
        await expect(page.get_by_role("dialog", name="Einstellungen")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.reload()
        await expect(page.get_by_text("später zu senden")).to_be_visible()
        await expect(page.get_by_test_id("composer")).to_have_value("ein Entwurf")
        await stoppable.start()
        await context.set_offline(False)
        await ready(page)
        assert (await stoppable.fake.received("message"))["text"] == "später zu senden"


async def test_the_page_says_that_it_reconnects_while_the_gateway_is_stopped(
    browser: Browser, stoppable: StoppableGateway
) -> None:
    async with profile(browser, "fr") as context:
        page = await context.new_page()
        await page.goto(stoppable.origin)
        await sign_in(page)
        await stored(page)
        await stoppable.stop()
        await page.reload()
        await expect(page.locator("#banner")).to_be_visible()
        await expect(page.locator("#banner-words")).to_contain_text("Reconnexion…")
        await stoppable.start()
        await ready(page)


async def test_only_the_shell_is_stored_and_no_secret(browser: Browser, stoppable: StoppableGateway) -> None:
    async with profile(browser) as context:
        page = await context.new_page()
        await page.goto(stoppable.origin)
        await sign_in(page)
        await stored(page)
        await page.reload()
        await ready(page)
        found = await page.evaluate(_STORED)
        (name,) = found["names"]
        folder = f"/static/{name.removeprefix('parlour-')}/"
        assert {url for url in found["urls"] if not url.startswith(folder)} == {"/"}
        html = await page.evaluate("async () => (await (await caches.match('/')).text())")
        assert TOKEN not in html


async def test_an_update_shows_the_new_page_at_the_next_load(
    browser: Browser, stoppable: StoppableGateway, tmp_path: Path
) -> None:
    async with profile(browser) as context:
        page = await context.new_page()
        await page.goto(stoppable.origin)
        await sign_in(page)
        await stored(page)
        newer = tmp_path / "static"
        shutil.copytree(STATIC, newer)
        edits = newer / "texts.js"
        edits.write_text(edits.read_text() + "\nglobalThis.newer = true;\n")
        stoppable.pages = PageFiles(newer, packaged_tables())
        loaded: list[str] = []
        page.on("request", lambda request: loaded.append(request.url))
        await page.reload()
        await ready(page)
        assert await page.evaluate("globalThis.newer") is True
        versions = {url.split("/")[4] for url in loaded if "/static/" in url}
        assert len(versions) == 1
        (version,) = versions
        await page.evaluate(_UPDATED, f"parlour-{version}")
        await stoppable.stop()
        await page.reload()
        await expect(page.locator("#banner")).to_be_visible()
        assert await page.evaluate("globalThis.newer") is True
        await stoppable.start()
        await ready(page)


async def test_signing_out_clears_what_is_stored_of_the_person(
    browser: Browser, stoppable: StoppableGateway
) -> None:
    async with profile(browser) as context:
        page = await context.new_page()
        await page.goto(stoppable.origin)
        await sign_in(page)
        stoppable.fake.accepting = False
        await send(page, "secret words")
        await stoppable.fake.received("message")
        await page.get_by_test_id("composer").fill("a secret draft")
        await sign_out(page)
        await expect(page.get_by_test_id("token-input")).to_be_visible()
        kept = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
        assert "secret" not in kept
        assert set(json.loads(kept)[0]) <= {"parlour.theme"}


async def test_chromium_can_install_the_page(browser: Browser, stoppable: StoppableGateway) -> None:
    async with profile(browser) as context:
        page = await context.new_page()
        await page.goto(stoppable.origin)
        devtools = await context.new_cdp_session(page)
        found = await devtools.send("Page.getAppManifest")
        assert found["errors"] == []
        manifest = json.loads(found["data"])
        assert (manifest["lang"], manifest["display"], manifest["start_url"]) == ("de", "standalone", "/")
        sizes = {(icon["sizes"], icon["purpose"]) for icon in manifest["icons"]}
        assert {("192x192", "any"), ("512x512", "any"), ("512x512", "maskable")} <= sizes
        for icon in manifest["icons"]:
            assert (await page.request.get(stoppable.origin + icon["src"])).ok
        errors = await devtools.send("Page.getInstallabilityErrors")
        ids = [one["errorId"] for one in errors["installabilityErrors"]]
        # A profile of a test is a private window, in which no browser installs anything.
        assert [one for one in ids if one != "in-incognito"] == []
