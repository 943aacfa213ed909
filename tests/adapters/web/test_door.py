"""Who gets in: forty Host and Origin variants, the page's files and their headers, traversal attempts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import WSServerHandshakeError
from yarl import URL

from adapters.web.security import AttemptLimit, security_headers, token_matches
from pipeline.domain.clock import ManualClock
from tests.adapters.web.harness import WebHarness, serving

# HOST and PORT stand for the server's own.
FOREIGN_ORIGINS = [
    None,
    "",
    "null",
    "http://evil.example",
    "https://HOST:PORT",
    "http://HOST",
    "http://HOST:1",
    "http://HOST:PORT/",
    "http://HOST:PORT/ws",
    "http://HOST:PORT.evil.example",
    "http://HOST:PORT@evil.example",
    "http://evil.example#http://HOST:PORT",
    "http://evil.example/http://HOST:PORT",
    "http://HOST:PORT http://evil.example",
    "http://HOST:PORT, http://evil.example",
    "http://user@HOST:PORT",
    "http://localhost:PORT",
    "http://[::1]:PORT",
    "http://0.0.0.0:PORT",
    "http://127.1:PORT",
    "http://2130706433:PORT",
    "http://0177.0.0.1:PORT",
    "ws://HOST:PORT",
    "HTTP://HOST:PORT",
    "file://",
    "chrome-extension://abcdefghijklmnop",
    "HOST:PORT",
    "http://HOST:PORT\\.evil.example",
]
FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:PORT",
    "HOST",
    "HOST:1",
    "HOST:PORT.evil.example",
    "localhost:PORT",
    "[::1]:PORT",
    "127.1:PORT",
    "0.0.0.0:PORT",
    "HOST:PORT, evil.example",
    "HOST.:PORT",
    "user@HOST:PORT",
    "HOST:0PORT",
]


def _filled(template: str, harness: WebHarness) -> str:
    host, port = harness.host.split(":")
    return template.replace("HOST", host).replace("PORT", port)


@pytest.mark.parametrize("template", FOREIGN_ORIGINS)
async def test_a_foreign_or_missing_origin_is_refused_before_the_socket_opens(
    tmp_path: Path, template: str | None
) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        headers = {} if template is None else {"Origin": _filled(template, harness)}
        with pytest.raises(WSServerHandshakeError) as refusal:
            await browser.client.ws_connect("/ws", headers=headers)
    assert refusal.value.status == 403


@pytest.mark.parametrize("template", FOREIGN_HOSTS)
async def test_a_foreign_host_is_refused_on_every_route(tmp_path: Path, template: str) -> None:
    harness = WebHarness(tmp_path)
    (harness.static / "index.html").write_text("<p>page</p>")
    (harness.static / "app.js").write_text("1")
    async with serving(harness) as browser:
        headers = {"Host": _filled(template, harness), "Origin": harness.origin}
        statuses = []
        for path in ("/", "/static/app.js", "/static/none", "/ws"):
            async with browser.client.get(path, headers=headers) as response:
                statuses.append(response.status)
                assert "evil" not in await response.text()
        with pytest.raises(WSServerHandshakeError) as refusal:
            await browser.client.ws_connect("/ws", headers=headers)
    assert statuses == [403] * 4
    assert refusal.value.status == 403


async def test_two_origin_headers_are_refused_even_when_one_is_ours(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        headers = [("Origin", harness.origin), ("Origin", "http://evil.example")]
        async with browser.client.get("/ws", headers=headers) as response:
            assert response.status == 403


async def test_a_plain_request_for_the_socket_is_refused_in_words(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with (
        serving(harness) as browser,
        browser.client.get("/ws", headers={"Origin": harness.origin}) as response,
    ):
        assert response.status == 400
        assert "WebSocket handshake" in await response.text()


async def test_too_many_sockets_are_refused_with_503(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path, max_sockets=2)
    async with serving(harness) as browser:
        await browser.open()
        await browser.open(chat=None)
        with pytest.raises(WSServerHandshakeError) as refusal:
            await browser.connect()
    assert refusal.value.status == 503


async def test_a_socket_waits_while_silent_ones_hold_the_handshake_slots(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path, max_handshakes=1, hello_timeout_s=0.2)
    async with serving(harness) as browser:
        silent = await browser.connect()
        async with asyncio.TaskGroup() as group:
            opening = group.create_task(browser.open())
            closed = group.create_task(silent.hear_close())
    assert opening.result()[1][-1]["type"] == "ready"
    assert closed.result() == 4408


async def test_the_page_and_its_files_have_types_tags_and_headers(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    kinds = {
        "index.html": "text/html; charset=utf-8",
        "app.js": "text/javascript; charset=utf-8",
        "app.css": "text/css; charset=utf-8",
        "icon.svg": "image/svg+xml; charset=utf-8",
        "app.webmanifest": "application/manifest+json; charset=utf-8",
        "sub/part.js": "text/javascript; charset=utf-8",
    }
    (harness.static / "sub").mkdir()
    for name in kinds:
        (harness.static / name).write_text(f"content of {name}")
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        for name, kind in kinds.items():
            path = "/" if name == "index.html" else f"/static/{name}"
            async with browser.client.get(path) as response:
                assert (response.status, response.headers["Content-Type"]) == (200, kind)
                assert await response.text() == f"content of {name}"
                assert response.headers["Cache-Control"] == "no-cache"
                for header, value in security_headers().items():
                    assert response.headers[header] == value
                tag = response.headers["ETag"]
            async with browser.client.get(path, headers={"If-None-Match": f'"x", W/{tag}'}) as again:
                assert again.status == 304
                assert await again.read() == b""


def test_the_content_policy_lets_in_nothing_foreign() -> None:
    policy = security_headers()["Content-Security-Policy"]
    sources = {word for part in policy.split(";") for word in part.split()[1:]}
    assert policy.startswith("default-src 'none'")
    assert sources == {"'none'", "'self'", "data:", "blob:"}
    assert security_headers()["Permissions-Policy"].startswith("microphone=(self)")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../secret.js",
        "/static/..%2fsecret.js",
        "/static/%2e%2e/secret.js",
        "/static/%2e%2e%2fsecret.js",
        "/static/..%5csecret.js",
        "/static/....//secret.js",
        "/static/sub/../../secret.js",
        "/static//secret.js",
        "/static/%2fetc%2fpasswd",
        "/static/secret.js%00.js",
        "/static/link.js",
        "/static/linked/secret.js",
        "/static/notes.txt",
        "/static/.hidden",
        "/static/app.js/",
        "/static/",
    ],
)
async def test_only_listed_files_can_be_fetched(tmp_path: Path, path: str) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "secret.js").write_text("secret")
    (tmp_path / "static" / "link.js").symlink_to(tmp_path / "secret.js")
    (tmp_path / "static" / "linked").symlink_to(tmp_path)
    (tmp_path / "static" / "app.js").write_text("1")
    (tmp_path / "static" / "notes.txt").write_text("secret")
    (tmp_path / "static" / ".hidden").write_text("secret")
    async with serving(WebHarness(tmp_path)) as browser:
        address = URL(f"http://{browser.harness.host}{path}", encoded=True)
        async with browser.client.session.get(address) as response:
            assert response.status == 404
            assert "secret" not in await response.text()


async def test_an_installation_without_its_page_says_so(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser, browser.client.get("/") as response:
        assert response.status == 503
        assert "install parlour again" in await response.text()


def test_a_token_matches_only_itself_and_an_empty_one_never() -> None:
    assert token_matches("s3cret", "s3cret")
    assert not token_matches("s3cre", "s3cret")
    assert not token_matches("\ud800", "s3cret")
    assert not token_matches("", "")


async def test_the_attempt_limit_slides_with_the_clock() -> None:
    clock = ManualClock()
    limit = AttemptLimit(clock)
    for _ in range(4):
        limit.note_failure()
    assert not limit.locked()
    limit.note_failure()
    assert limit.locked()
    clock.step_wall(3600)
    assert limit.locked()
    await clock.advance(60)
    assert not limit.locked()
