"""Who gets in: forty Host and Origin variants, the page's files and their headers, traversal attempts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import WSServerHandshakeError
from yarl import URL

from adapters.web.attempts import WrongTokens, network_of
from adapters.web.pending_sockets import Openings
from adapters.web.security import security_headers, token_matches
from pipeline.domain.clock import ManualClock
from tests.adapters.web.harness import WebHarness, serving

# HOST and PORT represent the server's own.
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


async def test_silent_sockets_give_way_to_a_client_that_speaks(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path, max_openings=4, hello_timeout_s=1000.0)
    async with serving(harness) as browser:
        silent = [await browser.connect() for _ in range(60)]
        page, frames = await browser.open()
        assert frames[-1]["type"] == "ready"
        gone = [await one.hear_close() for one in silent[:57]]
        assert set(gone) == {1006}
        assert await page.ping() == []
        browser.stop()


@pytest.mark.parametrize("size", [16 * 1024 + 1, 1_000_000])
async def test_before_its_hello_a_client_may_send_little(tmp_path: Path, size: int) -> None:
    async with serving(WebHarness(tmp_path, hello_timeout_s=1000.0)) as browser:
        page = await browser.connect()
        await page.socket.send_str("x" * size)
        assert (await page.hear())["code"] == "bad_frame"
        assert await page.hear_close() == 4400


async def test_after_its_hello_a_client_may_send_what_welcome_allows(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    async with serving(harness) as browser:
        page, _ = await browser.open()
        await page.say(type="voice", client_id="v1", mime="audio/ogg", size=150_000)
        await page.socket.send_bytes(b"x" * 150_000)
        assert (await page.hear())["type"] == "accepted"


async def test_one_address_has_its_share_of_the_openings_and_the_others_are_free() -> None:
    openings = Openings(places=4, share=2)
    first, second, other = (openings.enter(address) for address in ("a", "a", "b"))
    third = openings.enter("a")
    assert [one.ended_by for one in (first, second, third, other)] == ["crowd", "time", "time", "time"]
    openings.enter("c")
    openings.enter("d")
    assert len(openings) == 4
    assert second.ended_by == "crowd"
    with pytest.raises(TimeoutError):
        async with second.within(1000.0):
            await asyncio.Event().wait()


async def test_a_socket_that_has_sent_something_stays_as_long_as_there_is_a_silent_one() -> None:
    openings = Openings(places=4, share=2)
    speaking, silent = openings.enter("a"), openings.enter("a")
    speaking.spoke = True
    openings.enter("a")
    assert [speaking.ended_by, silent.ended_by] == ["time", "crowd"]


async def test_many_clients_of_one_address_that_come_at_once_are_all_let_in(tmp_path: Path) -> None:
    async with serving(WebHarness(tmp_path)) as browser:
        opened = await asyncio.gather(*(browser.open(chat=None) for _ in range(48)))
        assert {frames[-1]["type"] for _, frames in opened} == {"ready"}


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


@pytest.mark.parametrize(
    ("content", "accepted", "packed"),
    [
        ("a long script " * 100, "gzip, deflate, br", True),
        ("a long script " * 100, "identity", False),
        ("short", "gzip", False),
    ],
)
async def test_a_file_is_compressed_where_the_browser_takes_it_and_it_saves_much(
    tmp_path: Path, content: str, accepted: str, packed: bool
) -> None:
    harness = WebHarness(tmp_path)
    (harness.static / "app.js").write_text(content)
    harness = WebHarness(tmp_path)
    async with (
        serving(harness) as browser,
        browser.client.get("/static/app.js", headers={"Accept-Encoding": accepted}) as response,
    ):
        assert response.headers.get("Content-Encoding") == ("gzip" if packed else None)
        assert (int(response.headers["Content-Length"]) < len(content)) is packed
        assert await response.text() == content


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


async def test_wrong_tokens_are_counted_by_address_over_a_minute() -> None:
    clock = ManualClock()
    counted: list[str] = []
    wrong = WrongTokens(clock, "page", lambda: counted.append("x"))
    assert [wrong.note("192.0.2.1") for _ in range(6)] == [False] * 5 + [True]
    assert not wrong.note("192.0.2.2")
    clock.step_wall(3600)
    assert wrong.note("192.0.2.1")
    await clock.advance(61)
    assert not wrong.note("192.0.2.1")
    assert len(counted) == 9


async def test_wrong_tokens_are_logged_once_a_minute_with_their_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    wrong = WrongTokens(clock, "page")
    for _ in range(100):
        wrong.note("192.0.2.1")
    await clock.advance(60)
    wrong.note("192.0.2.2")
    lines = [(one.__dict__["address"], one.__dict__["count"]) for one in caplog.records]
    assert lines == [("192.0.2.1", 1), ("192.0.2.2", 100)]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("not an address", "unknown"),
        (None, "unknown"),
    ],
)
def test_an_address_is_counted_as_what_one_host_owns(address: str | None, network: str) -> None:
    assert network_of(address) == network
