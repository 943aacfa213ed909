"""Search without a key: the real library, through the real proxy, to search engines of the test."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from pipeline.domain.clock import SystemClock
from pipeline.tools.guarded_proxy import guarded_proxy
from pipeline.tools.search_backends import Hit, SearchFailed
from pipeline.tools.search_keyless import Keyless
from pipeline.tools.web_addresses import RequestUrl
from pipeline.tools.web_client import GuardedWeb
from tests.pipeline.tools.web_server import HERE, Handler, Names, Site, says, serving

_HOSTS = ("html.duckduckgo.com", "search.brave.com", "www.mojeek.com")
_OPENSSL = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
DUCK = """<html><body><div class="result links_main body"><h2><a href="https://tea.example/">Tea</a></h2>
<a href="https://tea.example/">All about tea.</a></div></body></html>"""


class Engines(GuardedWeb):
    """Connects every host to the test's server; the checks of addresses are those of `GuardedWeb`'s tests."""

    def __init__(self, site: Site) -> None:
        super().__init__(SystemClock())
        self._site = site
        self.hosts: list[str] = []

    async def connect(self, target: RequestUrl) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.hosts.append(target.host)
        return await asyncio.open_connection(HERE, self._site.port)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")

    async def made(name: str, *options: str) -> int:
        keys = ("-keyout", str(folder / f"{name}.key"), "-out", str(folder / name), "-subj", f"/CN={name}")
        process = await asyncio.create_subprocess_exec(
            *_OPENSSL, *keys, *options, stderr=asyncio.subprocess.DEVNULL
        )
        return await process.wait()

    authority = ("-CA", str(folder / "authority"), "-CAkey", str(folder / "authority.key"))
    names = "subjectAltName=" + ",".join(f"DNS:{host}" for host in _HOSTS)
    assert asyncio.run(made("authority")) == 0
    leaf = made("engines", *authority, "-addext", "basicConstraints=critical,CA:FALSE", "-addext", names)
    assert asyncio.run(leaf) == 0
    return folder


def _tls(folder: Path) -> ssl.SSLContext:
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(folder / "engines", folder / "engines.key")
    return own


async def _search(engines: GuardedWeb, folder: Path, deadline_s: float = 20.0) -> list[Hit]:
    keyless = Keyless(engines, SystemClock(), certificates=str(folder / "authority"), deadline_s=deadline_s)
    return list(await keyless.search("green tea", 3))


async def test_the_library_searches_through_the_guard_and_its_results_come_back(certificate: Path) -> None:
    queries = []

    async def duck(request: web.Request) -> web.StreamResponse:
        queries.append((await request.post()).get("q"))
        return web.Response(text=DUCK, content_type="text/html")

    async with serving({"/html/": duck, "/search": says("<html></html>")}, _tls(certificate)) as site:
        engines = Engines(site)
        hits = await _search(engines, certificate)

    assert queries == ["green tea"]
    assert [(hit.url, hit.title) for hit in hits] == [("https://tea.example/", "Tea")]
    assert "All about tea." in hits[0].excerpt
    assert set(engines.hosts) <= set(_HOSTS)
    assert "html.duckduckgo.com" in engines.hosts


async def test_engines_that_refuse_are_one_clear_line(certificate: Path) -> None:
    pages: dict[str, Handler] = {"/html/": says("no", status=403), "/search": says("no", status=429)}
    async with serving(pages, _tls(certificate)) as site:
        with pytest.raises(SearchFailed, match="cannot be reached, or refuse automatic searches now"):
            await _search(Engines(site), certificate)


async def test_an_engine_that_never_answers_ends_at_the_time_limit(certificate: Path) -> None:
    over = asyncio.Event()

    async def silent(_request: web.Request) -> web.StreamResponse:
        await over.wait()
        return web.Response()

    async with serving({"/html/": silent, "/search": silent}, _tls(certificate)) as site:
        with pytest.raises(SearchFailed, match="did not answer within 1 seconds"):
            await _search(Engines(site), certificate, deadline_s=1.0)
        over.set()


async def test_an_engine_at_an_address_of_a_private_network_is_not_reached() -> None:
    names = Names(html_duckduckgo_com=[["10.0.0.7"]])
    keyless = Keyless(GuardedWeb(SystemClock(), resolve=names), SystemClock())

    assert "is at 10.0.0.7: it is not an address of the public internet" in await keyless.problem()


@pytest.fixture
async def proxy() -> AsyncIterator[tuple[str, int]]:
    """The password of a proxy for a guard that knows one name in a private network, and its port."""
    names = Names(inside_example=[["192.168.1.5"]])
    async with guarded_proxy(GuardedWeb(SystemClock(), resolve=names)) as address:
        login, _, place = address.removeprefix("http://").rpartition("@")
        yield login, int(place.rpartition(":")[2])


async def _status(port: int, line: str, login: str = "") -> str:
    head = f"{line}\r\nHost: x\r\n"
    if login:
        head += f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n"
    reader, writer = await asyncio.open_connection(HERE, port)
    writer.write(f"{head}\r\n".encode())
    answer = (await reader.readline()).decode()
    writer.close()
    return answer.split()[1]


@pytest.mark.parametrize(
    "line",
    [
        "CONNECT inside.example:443 HTTP/1.1",
        "CONNECT 127.0.0.1:443 HTTP/1.1",
        "CONNECT [::1]:443 HTTP/1.1",
        "CONNECT search.example:22 HTTP/1.1",
        "CONNECT user@search.example:443 HTTP/1.1",
        "GET http://search.example/ HTTP/1.1",
    ],
)
async def test_the_proxy_connects_to_nothing_but_tls_of_public_hosts(
    proxy: tuple[str, int], line: str
) -> None:
    login, port = proxy

    assert await _status(port, line, login) == "403"


async def test_the_proxy_refuses_a_client_without_its_password(proxy: tuple[str, int]) -> None:
    _, port = proxy

    assert await _status(port, "CONNECT search.example:443 HTTP/1.1") == "407"
    assert await _status(port, "CONNECT search.example:443 HTTP/1.1", "parlour:wrong") == "407"
