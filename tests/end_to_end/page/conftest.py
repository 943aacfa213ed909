"""The chat page in a real Chromium with a scripted gateway behind it."""

from __future__ import annotations

import array
import math
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page

from tests.end_to_end.page.acts import ready, sign_in
from tests.end_to_end.page.another_chat import begin_another_chat
from tests.end_to_end.page.fake_gateway import BLANK, TOKEN, FakeGateway, running_gateway
from tests.end_to_end.page.stoppable_gateway import StoppableGateway
from tests.end_to_end.page.worker_port import worker_port
from tests.support.browser_fixture import SIZE, Watch, open_chromium, opened_context

_RATE = 48_000


@pytest.fixture(scope="session")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six seconds that rise and fall like syllables: loud enough to see, no model hears words in it."""
    path = tmp_path_factory.mktemp("microphone") / "voice.wav"
    # A third of a second is one syllable and sixty whole waves: each is as the one before.
    syllable = array.array("h")
    for index in range(_RATE // 3):
        at = index / _RATE
        loudness = 0.5 * (1 - math.cos(2 * math.pi * 3 * at))
        syllable.append(int(12_000 * loudness * math.sin(2 * math.pi * 180 * at)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes(syllable.tobytes() * 18)
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(microphone: Path) -> AsyncIterator[Browser]:
    """This folder's Chromium, with this folder's microphone. It runs on while tests of other folders run."""
    async with open_chromium(microphone) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def gateway() -> AsyncIterator[FakeGateway]:
    async with running_gateway(worker_port()) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _lasting(browser: Browser) -> AsyncIterator[BrowserContext]:
    async with opened_context(browser) as context:
        yield context


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _lasting_second(browser: Browser) -> AsyncIterator[BrowserContext]:
    async with opened_context(browser) as context:
        yield context


@pytest_asyncio.fixture(loop_scope="session")
async def page(_lasting: BrowserContext, watch: Watch) -> AsyncIterator[Page]:
    """A tab in which nothing is left of other tests, though the browser keeps its process for it: a page that
    opens in a new process takes three times as long. A gateway that the test starts listens at
    `worker_port()`, because scripts are kept for one origin. Not for tests that add scripts or a clock to the
    page, which cannot be removed: `fresh_page` is theirs."""
    async with _emptied(_lasting, watch) as tab:
        yield tab


@pytest_asyncio.fixture(loop_scope="session")
async def phone(_lasting_second: BrowserContext, watch: Watch) -> AsyncIterator[Page]:
    """As `page`, in another browser profile: what it keeps is not shared with `page`."""
    async with _emptied(_lasting_second, watch) as tab:
        yield tab


@pytest_asyncio.fixture(loop_scope="session")
async def fresh_page(context: BrowserContext) -> Page:
    """The tab of a new browser profile."""
    return await context.new_page()


@pytest_asyncio.fixture(loop_scope="session")
async def tab(page: Page, gateway: FakeGateway) -> Page:
    """As `page`, with a fake gateway that serves the page at its origin."""
    return page


@asynccontextmanager
async def _emptied(lasting: BrowserContext, watch: Watch) -> AsyncIterator[Page]:
    """The first tab of a profile that lasts; afterwards it is empty."""
    tab = lasting.pages[0] if lasting.pages else await lasting.new_page()
    await tab.set_viewport_size(SIZE)
    await tab.emulate_media(color_scheme="light", reduced_motion="reduce")
    if not tab.url.endswith(BLANK):
        await _show_blank(tab)
    await tab.evaluate("localStorage.clear(), sessionStorage.clear()")
    with watch.following(lasting):
        yield tab
    # None of them may connect to the gateway of the next test, which has the same port.
    for other in lasting.pages:
        if other is not tab:
            await other.close()
    await tab.unroute_all()
    await _show_blank(tab)
    await lasting.clear_permissions()
    await lasting.clear_cookies()


async def _show_blank(tab: Page) -> None:
    try:
        async with running_gateway(worker_port()) as short:
            await tab.goto(short.origin + BLANK)
    except OSError:
        # The gateway of the test is still there.
        await tab.goto(f"http://127.0.0.1:{worker_port()}{BLANK}")


@pytest_asyncio.fixture(loop_scope="session")
async def room(tab: Page, gateway: FakeGateway, watch: Watch) -> AsyncIterator[Page]:
    """A signed-in page with an empty conversation; afterwards it must have had nothing to complain of. The
    browser knows the token already: to type it takes as long as to load the page."""
    await tab.evaluate("token => localStorage.setItem('parlour.token', token)", TOKEN)
    await tab.goto(gateway.origin)
    await ready(tab)
    yield tab
    _nothing_to_complain_of(watch, gateway)


def _nothing_to_complain_of(watch: Watch, gateway: FakeGateway) -> None:
    # A connection that the test itself broke is the one thing that a browser always reports.
    complaints = [words for words in watch.complaints if "WebSocket connection" not in words]
    assert complaints == []
    assert [url for url in watch.requests if not url.startswith((gateway.origin, "blob:"))] == []


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _signed_in(browser: Browser) -> AsyncIterator[tuple[Page, FakeGateway, Watch]]:
    watch = Watch()
    async with running_gateway() as gateway, opened_context(browser) as context:
        watch.follow(context)
        watch.list_requests(context)
        page = await context.new_page()
        await page.goto(gateway.origin)
        await sign_in(page)
        yield page, gateway, watch


@pytest.fixture(scope="session")
def _kept_for() -> list[tuple[str, int]]:
    """For which modules `kept` was opened, and how many tests had failed then."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def kept(
    request: pytest.FixtureRequest,
    _signed_in: tuple[Page, FakeGateway, Watch],
    _kept_for: list[tuple[str, int]],
) -> AsyncIterator[tuple[Page, FakeGateway]]:
    """A signed-in page and its gateway with an empty conversation, for tests that only converse: to open a
    page takes longer than most of what such a test does. What outlives a conversation must not be left: a
    message above the field, a stored choice, a changed gateway, a frame that the test does not wait for."""
    page, gateway, watch = _signed_in
    wanted = (request.node.nodeid.partition("::")[0], request.session.testsfailed)
    if _kept_for[-1:] != [wanted]:
        # The gateway answers while tests of the page run, and the page may have begun connections meanwhile;
        # a test that failed may have left anything.
        _kept_for.append(wanted)
        await page.goto(gateway.origin)
        await ready(page)
        await gateway.wait(lambda: len(gateway.clients) == 1, "one connection")
    watch.complaints.clear()
    watch.requests.clear()
    await begin_another_chat(page, gateway)
    yield page, gateway
    _nothing_to_complain_of(watch, gateway)


@pytest_asyncio.fixture(loop_scope="session")
async def stoppable() -> AsyncIterator[StoppableGateway]:
    gateway = StoppableGateway()
    await gateway.start()
    yield gateway
    await gateway.stop()
