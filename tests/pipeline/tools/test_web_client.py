"""The guarded client against a real server: what it connects to, follows and takes."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from collections.abc import Awaitable
from pathlib import Path

import pytest
from aiohttp import web

from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.tools.web_client import MAX_BODY_BYTES, MAX_REDIRECTS, GuardedWeb, WebFailed, WebPage
from tests.pipeline.tools.web_server import HERE, Names, guarded, moved, says, serving
from tests.support.tables import each

_OPENSSL = (
    *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=site.example"),
    *("-addext", "subjectAltName=DNS:site.example"),
)


async def test_a_page_is_fetched_by_name_without_cookies_referrer_or_proxy() -> None:
    async def biscuit(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "/page", "Set-Cookie": "id=1"})

    async with serving({"/": biscuit, "/page": says("hello")}) as site:
        page = await guarded(site).get(site.url())

        asked = site.requests[-1]
        assert (page.body, page.status, page.media_type, page.charset) == (
            b"hello",
            200,
            "text/html",
            "utf-8",
        )
        assert page.url == site.url("/page")
        assert asked.host == f"site.example:{site.port}"
        assert not {"Cookie", "Authorization", "Referer"} & set(asked.headers)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "10.0.0.1", "169.254.169.254", "0.0.0.0", "[::ffff:7f00:1]"]
)
async def test_a_private_address_in_the_url_is_not_connected_to(host: str) -> None:
    async with serving({"/": says("secret")}) as site:
        client = GuardedWeb(SystemClock(), ports=(site.port,))

        with pytest.raises(WebFailed, match="not an address of the public internet"):
            await client.get(f"http://{host}:{site.port}/")
        assert site.requests == []


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["1.1.1.1", "127.0.0.1"], ["::1"], ["fe80::1%lo"], ["::ffff:1.1.1.1"]]
)
async def test_a_name_that_leads_to_a_private_address_is_refused(answers: list[str]) -> None:
    async with serving({"/": says("secret")}) as site:
        client = GuardedWeb(SystemClock(), ports=(site.port,), resolve=Names(evil_example=[answers]))

        with pytest.raises(WebFailed, match=r"evil\.example, which is at"):
            await client.get(site.url(host="evil.example"))
        assert site.requests == []


async def test_a_name_that_answers_again_for_each_question_is_checked_each_time() -> None:
    names = Names(twice_example=[[HERE], ["10.0.0.5"]])

    async with serving({"/": moved("/again"), "/again": says("secret")}) as site:
        with pytest.raises(WebFailed, match=r"10\.0\.0\.5"):
            await guarded(site, names).get(site.url(host="twice.example"))

        assert [request.path for request in site.requests] == ["/"]
        assert names.asked == ["twice.example", "twice.example"]


async def test_the_address_that_is_connected_to_is_the_one_that_was_checked() -> None:
    """A policy that changes between the look-up and the connection has the last word."""
    asked: list[str] = []

    def fickle(address: str) -> str:
        asked.append(address)
        return "" if len(asked) == 1 else "it was moved"

    async with serving({"/": says("secret")}) as site:
        with pytest.raises(WebFailed, match="it was moved"):
            await guarded(site, refused=fickle).get(site.url())

        assert asked == [HERE, HERE]
        assert site.requests == []


@each(
    "to",
    [
        *("http://127.0.0.2/", "http://10.0.0.1/x", "//169.254.169.254/latest/meta-data/", "http://[::1]/"),
        *("http://0x7f000001/", "http://2130706433/", "http://user:pass@site.example/", "file:///etc/passwd"),
        *(
            "http://site.example:22/",
            "ftp://site.example/",
            "javascript:alert(1)",
            "http://[::1",
            "http:\\\\x",
        ),
    ],
)
async def test_a_redirect_is_checked_like_the_first_address(to: str) -> None:
    async with serving({"/": moved(to)}) as site:
        with pytest.raises(WebFailed):
            await guarded(site).get(site.url())

        assert len(site.requests) == 1


async def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    pages = {f"/{number}": moved(f"/{number + 1}", 307) for number in range(MAX_REDIRECTS)}

    async with serving(pages | {f"/{MAX_REDIRECTS}": says("there")}) as site:
        assert (await guarded(site).get(site.url("/0"))).body == b"there"

    async with serving(pages | {f"/{MAX_REDIRECTS}": moved("/0")}) as site:
        with pytest.raises(WebFailed, match="more than 5 times"):
            await guarded(site).get(site.url("/0"))
        assert len(site.requests) == MAX_REDIRECTS + 1


async def test_a_redirect_to_nowhere_is_said() -> None:
    async with serving({"/": moved("")}) as site:
        with pytest.raises(WebFailed, match="does not say where"):
            await guarded(site).get(site.url())


@pytest.mark.parametrize(
    ("packing", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("x-gzip", gzip.compress)]
)
async def test_a_packed_page_is_unpacked_and_a_bomb_is_cut(packing: str, pack: type[bytes]) -> None:
    bomb = pack(b"0" * 50_000_000)
    assert len(bomb) < 100_000
    pages = {
        "/": says(pack(b"hello"), headers={"Content-Encoding": packing}),
        "/bomb": says(bomb, headers={"Content-Encoding": packing}),
    }

    async with serving(pages) as site:
        page = await guarded(site).get(site.url())
        cut = await guarded(site).get(site.url("/bomb"))

    assert (page.body, page.cut) == (b"hello", False)
    assert (len(cut.body), cut.cut) == (MAX_BODY_BYTES, True)


async def test_a_page_of_exactly_the_limit_is_whole_and_one_byte_more_is_cut() -> None:
    pages = {"/": says(b"x" * MAX_BODY_BYTES), "/more": says(b"x" * (MAX_BODY_BYTES + 1))}

    async with serving(pages) as site:
        assert not (await guarded(site).get(site.url())).cut
        assert (await guarded(site).get(site.url("/more"))).cut


@pytest.mark.parametrize("packing", ["br", "zstd", "compress", "gzip, gzip"])
async def test_a_packing_that_is_not_understood_is_said(packing: str) -> None:
    async with serving({"/": says(b"x", headers={"Content-Encoding": packing})}) as site:
        with pytest.raises(WebFailed, match="not understood"):
            await guarded(site).get(site.url())


async def test_a_page_that_is_packed_wrongly_is_said() -> None:
    async with serving({"/": says(b"no gzip", headers={"Content-Encoding": "gzip"})}) as site:
        with pytest.raises(WebFailed, match="packed wrongly"):
            await guarded(site).get(site.url())


@pytest.mark.parametrize("media", ["image/png", "application/octet-stream", "application/pdf", "audio/ogg"])
async def test_what_is_no_text_is_not_read(media: str) -> None:
    async with serving({"/": says(b"\x89PNG", content_type=media)}) as site:
        with pytest.raises(WebFailed, match=media):
            await guarded(site).get(site.url())


@pytest.mark.parametrize(
    "media", ["text/plain", "application/json", "application/rss+xml", "application/ld+json"]
)
async def test_text_of_every_kind_is_read(media: str) -> None:
    async with serving({"/": says(b"{}", content_type=media)}) as site:
        assert (await guarded(site).get(site.url())).media_type == media


async def test_a_server_that_never_answers_is_left_at_the_deadline() -> None:
    clock, asked, over = ManualClock(), asyncio.Event(), asyncio.Event()

    async def silent(_request: web.Request) -> web.StreamResponse:
        asked.set()
        await over.wait()
        return web.Response()

    async with serving({"/": silent}) as site, asyncio.TaskGroup() as tasks:
        fetch = tasks.create_task(_failure(guarded(site, clock=clock, deadline_s=20).get(site.url())))
        await asked.wait()
        await clock.advance(20)

        assert await fetch == "The page did not come within 20 seconds."
        over.set()


async def test_a_name_without_an_address_and_a_closed_port_are_said() -> None:
    async def no_one(_host: str) -> tuple[str, ...]:
        raise OSError("no such name")

    async with serving({}) as site:
        free = guarded(site)
    assert "cannot be fetched" in await _failure(free.get(f"http://site.example:{site.port}/"))
    assert "no such host" in (await _failure(guarded(site, resolve=no_one).get(site.url()))).lower()


async def _failure(fetch: Awaitable[WebPage]) -> str:
    with pytest.raises(WebFailed) as failed:
        await fetch
    return str(failed.value)


async def test_a_server_whose_certificate_is_not_trusted_is_said_and_gets_no_request(tmp_path: Path) -> None:
    made = [*_OPENSSL, "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "certificate")]
    openssl = await asyncio.create_subprocess_exec(*made, stderr=asyncio.subprocess.DEVNULL)
    assert await openssl.wait() == 0
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(tmp_path / "certificate", tmp_path / "key")

    async with serving({"/": says("secret")}, own) as site:
        words = await _failure(guarded(site).get(f"https://site.example:{site.port}/"))

    assert words == "The server's certificate is not trusted."
    assert site.requests == []
