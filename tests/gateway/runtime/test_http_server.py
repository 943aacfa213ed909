"""The HTTP server: every answer only under its own names, metrics only with the token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from adapters.web.attempts import WrongTokens
from gateway.app.web import metrics_check
from gateway.config import load
from gateway.runtime.http_server import Addresses, Server
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ConfigurationError


async def _boom(_request: web.Request) -> web.Response:
    raise ValueError("an inner detail")


@dataclass
class _Site:
    addresses: Addresses
    session: aiohttp.ClientSession
    ready: bool = True
    channels: tuple[str, ...] = ()

    async def get(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        async with self.session.get(self.addresses.url + path, headers=headers) as response:
            return response.status, await response.text(), dict(response.headers)


@pytest.fixture
async def site() -> AsyncIterator[_Site]:
    addresses = Addresses("127.0.0.1", 0, ("https://bot.example.org",))
    async with aiohttp.ClientSession() as session:
        found = _Site(addresses, session)
        server = Server(
            addresses=addresses,
            routes=[web.get("/boom", _boom)],
            ready=lambda: found.ready,
            channels=lambda: found.channels,
            metrics=lambda: b"parlour_accepted_total 1\n",
            token_check=lambda token: token == "right",
            wrong_tokens=WrongTokens(SystemClock(), "metrics"),
        )
        await server.start()
        yield found
        await server.close()


async def test_health_is_open_and_says_nothing_more(site: _Site) -> None:
    assert (await site.get("/healthz"))[:2] == (200, "ok\n")


async def test_readiness_follows_the_gateway(site: _Site) -> None:
    assert (await site.get("/readyz"))[0] == 200
    site.ready = False
    assert (await site.get("/readyz"))[:2] == (503, "not ready\n")


async def test_readiness_has_a_line_for_each_channel_after_the_first(site: _Site) -> None:
    site.channels = ("web:local up", "telegram:main down (refused)")
    assert (await site.get("/readyz"))[:2] == (200, "ready\nweb:local up\ntelegram:main down (refused)\n")


@pytest.mark.parametrize("header", ["", "right", "Bearer wrong", "Basic right", "Bearer", "Bearer  "])
async def test_metrics_need_the_token(site: _Site, header: str) -> None:
    status, text, _ = await site.get("/metrics", **({"Authorization": header} if header else {}))
    assert status == 401
    assert "parlour_accepted" not in text


async def test_guessing_the_token_of_the_metrics_is_reported_and_keeps_the_right_one_not_out(
    site: _Site,
) -> None:
    guesses = [(await site.get("/metrics", Authorization=f"Bearer guess-{n}"))[0] for n in range(7)]
    assert guesses == [401] * 5 + [429] * 2
    assert (await site.get("/metrics", Authorization="Bearer right"))[0] == 200


def test_the_metrics_token_opens_the_metrics_and_the_page_token_does_too() -> None:
    environ = {"KEY": "a-token-for-metrics-alone"}
    settings = load(Path("/dev/null"), environ, ["server.metrics_token=env:KEY"])

    check = metrics_check(settings, lambda token: token == "page")

    assert [check(token) for token in ("a-token-for-metrics-alone", "page", "", "x")] == [
        True,
        True,
        False,
        False,
    ]
    environ.clear()
    assert [check(token) for token in ("a-token-for-metrics-alone", "page", "")] == [False, True, False]


async def test_metrics_with_the_token(site: _Site) -> None:
    status, text, headers = await site.get("/metrics", Authorization="Bearer right")
    assert (status, text) == (200, "parlour_accepted_total 1\n")
    assert headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/boom", "/nowhere"])
@pytest.mark.parametrize(
    "host", ["evil.example.org", "127.0.0.1", "127.0.0.1:1", "localhost.evil.org:{port}", ""]
)
async def test_a_foreign_host_gets_nothing_from_any_route(site: _Site, path: str, host: str) -> None:
    status, text, _ = await site.get(path, Host=host.format(port=site.addresses.port))
    assert status in (400, 403)
    assert "ready" not in text


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "bot.example.org"])
async def test_our_own_names_are_served(site: _Site, host: str) -> None:
    assert (await site.get("/healthz", Host=host.format(port=site.addresses.port)))[0] == 200


@pytest.mark.parametrize("path", ["/healthz", "/boom", "/nowhere", "/metrics"])
async def test_every_answer_carries_the_security_headers(site: _Site, path: str) -> None:
    _, text, headers = await site.get(path)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "inner detail" not in text


async def test_a_port_in_use_is_named_with_what_to_do(site: _Site) -> None:
    second = Server(
        addresses=Addresses("127.0.0.1", site.addresses.port, ()),
        routes=[],
        ready=lambda: True,
        metrics=lambda: b"",
        token_check=lambda _: False,
        wrong_tokens=WrongTokens(SystemClock(), "metrics"),
    )
    with pytest.raises(
        ConfigurationError, match=r"server\.port: cannot listen on 127\.0\.0\.1:\d+ .*stop the"
    ):
        await second.start()


def test_origins_are_the_loopback_names_and_the_configured_ones() -> None:
    addresses = Addresses("127.0.0.1", 8765, ("https://bot.example.org",))
    assert addresses.origins() == {
        "http://127.0.0.1:8765",
        "http://localhost:8765",
        "http://[::1]:8765",
        "https://bot.example.org",
    }
    assert "bot.example.org" in addresses.hosts()
    assert Addresses("0.0.0.0", 80, ()).url == "http://127.0.0.1:80"
