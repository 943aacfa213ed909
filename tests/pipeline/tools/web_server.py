"""A web server of the tests' own on this machine, and a guarded client that may reach it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from pipeline.domain.clock import SystemClock
from pipeline.tools.web_addresses import public_only
from pipeline.tools.web_client import GuardedWeb

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
HERE = "127.0.0.1"


class Site:
    """What the server was asked for, and where it is."""

    def __init__(self, pages: dict[str, Handler]) -> None:
        self.pages = pages
        self.requests: list[web.Request] = []
        self.port = 0

    def url(self, path: str = "/", host: str = "site.example") -> str:
        return f"http://{host}:{self.port}{path}"


@asynccontextmanager
async def serving(pages: dict[str, Handler], tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site(pages)

    async def answer(request: web.Request) -> web.StreamResponse:
        site.requests.append(request)
        return await site.pages[request.path](request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    listener = web.TCPSite(runner, HERE, 0, ssl_context=tls)
    await listener.start()
    site.port = runner.addresses[0][1]
    try:
        yield site
    finally:
        await runner.cleanup()


def says(body: str | bytes, **given: Any) -> Handler:
    """A page with this body."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        parts: dict[str, Any] = {"content_type": "text/html"} | given
        if isinstance(body, bytes):
            return web.Response(body=body, **parts)
        return web.Response(text=body, **parts)

    return handler


def moved(to: str, status: int = 302) -> Handler:
    """A redirect."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": to})

    return handler


class Names:
    """A name server: the answers of each name in turn, the last one for ever."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        given = self.answers.get(host, [[HERE]])
        return given.pop(0) if len(given) > 1 else given[0]


def but_here(address: str) -> str:
    """The real policy, with the tests' own server let through."""
    return "" if address == HERE else public_only(address)


def guarded(site: Site, names: Names | None = None, **given: Any) -> GuardedWeb:
    parts: dict[str, Any] = {"resolve": names or Names(), "refused": but_here, "ports": (80, 443, site.port)}
    return GuardedWeb(given.pop("clock", None) or SystemClock(), **(parts | given))
