"""The page in Chromium: the time to its first paint, beside an empty document, and what a browser loads."""

from __future__ import annotations

from asyncio import timeout
from dataclasses import dataclass

from aiohttp import web
from playwright.async_api import Browser, Error, async_playwright

from bench.report import BenchUnavailable, Report, median, scratch_folder
from tests.support.browser import find_chromium, why_no_chromium
from tests.support.browser_fixture import FLAGS
from tests.support.gateway_process import GatewayProcess, free_port

_LOADS = 15
_LIMIT_S = 120.0
_EMPTY = "<!doctype html><html lang=en><title>Empty</title><p>Empty</p></html>"
_PAINTED = """() => new Promise((resolve) => {
  const known = performance.getEntriesByName('first-contentful-paint')[0];
  if (known) return resolve(known.startTime);
  new PerformanceObserver((list) => {
    const seen = list.getEntriesByName('first-contentful-paint')[0];
    if (seen) resolve(seen.startTime);
  }).observe({ type: 'paint', buffered: true });
})"""
_LOADED = """() => ['navigation', 'resource']
  .flatMap((type) => performance.getEntriesByType(type))
  .map((one) => [one.decodedBodySize, one.transferSize])"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """One load with an empty cache."""

    paint_ms: float
    requests: int
    bytes: int
    """Of all files, uncompressed."""
    sent: int
    """As transferred, with headers."""


async def run() -> Report:
    """Load both documents alternately, each time in a fresh browser profile."""
    path = find_chromium()
    if path is None:
        raise BenchUnavailable(why_no_chromium())
    ours: list[_Load] = []
    empty: list[_Load] = []
    with scratch_folder() as folder:
        async with (
            GatewayProcess(folder, port=free_port(), executed=True) as gateway,
            async_playwright() as playwright,
        ):
            await gateway.spawn()
            await gateway.wait_ready()
            browser = await playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
            floor = web.AppRunner(_empty_app())
            try:
                await floor.setup()
                site = web.TCPSite(floor, "127.0.0.1", 0)
                await site.start()
                async with timeout(_LIMIT_S):
                    for _ in range(_LOADS):
                        ours.append(await _load(browser, gateway.url))
                        empty.append(await _load(browser, f"http://127.0.0.1:{floor.addresses[0][1]}"))
            except Error as error:
                raise BenchUnavailable(f"Chromium cannot load the page: {error.message}") from error
            finally:
                await floor.cleanup()
                await browser.close()
    paint, base = median([one.paint_ms for one in ours]), median([one.paint_ms for one in empty])
    rows = [
        ("first contentful paint, median", f"{paint:.0f} ms", f"{base:.0f} ms"),
        (
            "the longest of all",
            f"{max(one.paint_ms for one in ours):.0f} ms",
            f"{max(one.paint_ms for one in empty):.0f} ms",
        ),
        ("requests", str(ours[0].requests), str(empty[0].requests)),
        ("files, uncompressed", f"{ours[0].bytes / 1e3:.0f} KB", f"{empty[0].bytes / 1e3:.1f} KB"),
        ("transferred, with headers", f"{ours[0].sent / 1e3:.0f} KB", f"{empty[0].sent / 1e3:.1f} KB"),
    ]
    return Report(
        bench="page",
        title=f"page: {_LOADS} loads on loopback, each with an empty cache",
        head=("", "the page", "an empty document"),
        rows=rows,
        notes=("the sign-in view, before a model or a connection is needed",),
        figures={
            "first_paint_ms": round(paint, 1),
            "empty_paint_ms": round(base, 1),
            "requests": ours[0].requests,
            "page_bytes": ours[0].bytes,
            "sent_bytes": ours[0].sent,
        },
    )


def _longest(loads: list[_Load]) -> float:
    return max(one.paint_ms for one in loads)


async def _load(browser: Browser, url: str) -> _Load:
    profile = await browser.new_context()
    try:
        page = await profile.new_page()
        await page.goto(url, wait_until="load")
        paint_ms: float = await page.evaluate(_PAINTED)
        loaded: list[list[int]] = await page.evaluate(_LOADED)
    finally:
        await profile.close()
    return _Load(
        paint_ms=paint_ms,
        requests=len(loaded),
        bytes=sum(size for size, _ in loaded),
        sent=sum(sent for _, sent in loaded),
    )


def _empty_app() -> web.Application:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=_EMPTY, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", answer)
    app.router.add_get("/favicon.ico", answer)
    return app
