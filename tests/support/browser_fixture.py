"""A real Chromium for tests: one browser per folder of tests and worker, a fresh context and page per test.

Tests that use `page` run on the session's event loop
(`pytest.mark.asyncio(loop_scope="session")`), because that is where the browser lives. A folder
makes its `browser` in its own conftest with `open_chromium`, because a browser's microphone is chosen
when it starts: a WAV file (48 kHz, mono, 16 bit) by its absolute path.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Request,
    ViewportSize,
    WebError,
    async_playwright,
    expect,
)

from tests.support.browser import find_chromium, why_no_chromium

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    # A process that draws without a graphics card, and what it says to the others, is a tenth of the work.
    "--in-process-gpu",
    # One tile is as large as a page: to draw it and put it on the screen takes less than twenty small ones.
    "--default-tile-width=1280",
    "--default-tile-height=1024",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    # A request to another host fails, which is a complaint: to list all requests takes a tenth of the time
    # that a page takes to open.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
)

SIZE: ViewportSize = {"width": 1100, "height": 800}
"""Of a page, unless a test changes it."""
_BLOCKED = "Service Worker registration blocked by Playwright"
PATIENCE_MS = 180_000
"""How long a page may take to show what is expected of it; only a failure lasts as long. Playwright's own
5 s are not enough for a browser that draws by software on a busy machine."""
expect.set_options(timeout=PATIENCE_MS)


@dataclass(kw_only=True)
class Watch:
    """What a page did that a test may want to know: complaints, and requests where it asks for them.

    Without slots, because Playwright keeps a note on the object that a handler belongs to.
    """

    complaints: list[str] = field(default_factory=list)
    """Console errors and warnings, uncaught exceptions, violations of the content policy."""
    requests: list[str] = field(default_factory=list)
    """Since `list_requests`."""
    _listed: list[BrowserContext] = field(default_factory=list)

    def follow(self, context: BrowserContext) -> None:
        """Listens to every page of `context`."""
        context.on("console", self._console)
        context.on("weberror", self._uncaught)

    def list_requests(self, context: BrowserContext) -> None:
        """Notes every request of the pages of `context`, until `following` ends."""
        context.on("request", self._request)
        self._listed.append(context)

    @contextmanager
    def following(self, context: BrowserContext) -> Iterator[None]:
        """As `follow`, until the block ends."""
        self.follow(context)
        yield
        context.remove_listener("console", self._console)
        context.remove_listener("weberror", self._uncaught)
        if context in self._listed:
            context.remove_listener("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and message.text != _BLOCKED:
            self.complaints.append(message.text)

    def _uncaught(self, error: WebError) -> None:
        self.complaints.append(f"uncaught: {error.error}")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)


@asynccontextmanager
async def open_chromium(microphone: Path | None = None) -> AsyncIterator[Browser]:
    """A running Chromium whose fake microphone plays `microphone` once for each recording, or beeps.

    Skips the test where there is no Chromium.
    """
    path = find_chromium()
    if path is None:
        pytest.skip(why_no_chromium())
    flags = list(FLAGS)
    if microphone is not None:
        flags.append(f"--use-file-for-fake-audio-capture={microphone}%noloop")
    async with async_playwright() as playwright:
        try:
            running = await playwright.chromium.launch(executable_path=path, headless=True, args=flags)
        except Error as error:
            pytest.skip(f"Chromium at {path} does not start: {error.message.splitlines()[0]}")
        yield running
        await running.close()


@pytest.fixture
def watch() -> Watch:
    """Complaints and requests of this test's pages."""
    return Watch()


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser, watch: Watch) -> AsyncIterator[BrowserContext]:
    """A fresh browser profile; two pages of it are two tabs."""
    async with opened_context(browser) as fresh:
        watch.follow(fresh)
        yield fresh


@asynccontextmanager
async def opened_context(browser: Browser) -> AsyncIterator[BrowserContext]:
    """A fresh browser profile until the block ends."""
    fresh = await browser.new_context(
        viewport=SIZE,
        locale="en-GB",
        timezone_id="UTC",
        color_scheme="light",
        # A browser without a graphics card draws every step of an animation with the processor.
        reduced_motion="reduce",
        # A worker would fetch every file of the page for each test; the tests of it make their own context.
        service_workers="block",
    )
    fresh.set_default_timeout(PATIENCE_MS)
    yield fresh
    await fresh.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> Page:
    """One empty tab."""
    return await context.new_page()
