"""What strangers can make the server hold: little, not for long, and never so much that health goes dark."""

from __future__ import annotations

import asyncio
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from socket import socket

import aiohttp
import pytest
from aiohttp import web

from adapters.web.attempts import WrongTokens
from gateway.runtime.http_server import Addresses, Server, ServerLimits
from pipeline.domain.clock import SystemClock

_MIB = 1_048_576
_STRANGERS = 200
_RISE = 50 * _MIB

_CHILD = """
import asyncio, sys
from aiohttp import web
from adapters.web.attempts import WrongTokens
from gateway.runtime.http_server import Addresses, Server
from pipeline.domain.clock import SystemClock

async def hook(request):
    return web.Response(text=str(len(await request.read())))

async def serve():
    addresses = Addresses("127.0.0.1", 0, ())
    server = Server(
        addresses=addresses, routes=[web.post("/hook", hook)], ready=lambda: True, metrics=lambda: b"",
        token_check=lambda _: False, wrong_tokens=WrongTokens(SystemClock(), "metrics"),
    )
    await server.start()
    print(addresses.port, flush=True)
    await asyncio.Event().wait()

asyncio.run(serve())
"""


async def _length(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await request.read())))


@asynccontextmanager
async def _serving(**limits: float) -> AsyncIterator[Addresses]:
    addresses = Addresses("127.0.0.1", 0, ())
    server = Server(
        addresses=addresses,
        routes=[web.post("/hook", _length)],
        ready=lambda: True,
        metrics=lambda: b"",
        token_check=lambda _: False,
        wrong_tokens=WrongTokens(SystemClock(), "metrics"),
        limits=ServerLimits(**limits),  # type: ignore[arg-type]  # counts and seconds alike
    )
    await server.start()
    yield addresses
    await server.close()


@asynccontextmanager
async def _connected(
    addresses: Addresses, said: str = ""
) -> AsyncIterator[tuple[StreamReader, StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", addresses.port)
    writer.write(said.encode())
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _to_the_end(reader: StreamReader) -> bytes:
    """What comes until the server closes, which resets the connection if something came too late."""
    answer = b""
    with suppress(ConnectionResetError):
        while piece := await reader.read(65_536):
            answer += piece
    return answer


def _head(addresses: Addresses, *headers: str) -> str:
    lines = ("POST /hook HTTP/1.1", f"Host: 127.0.0.1:{addresses.port}", *headers, "", "")
    return "\r\n".join(lines)


async def _post(addresses: Addresses, body: bytes | AsyncIterator[bytes], **headers: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{addresses.url}/hook", data=body, headers=headers) as response,
    ):
        return response.status, await response.text()


async def _pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 1024


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, _MIB])
async def test_bodies_up_to_the_limit_reach_their_handler_whole(size: int) -> None:
    async with _serving() as addresses:
        assert await _post(addresses, b"x" * size) == (200, str(size))


async def test_a_body_of_unknown_size_reaches_its_handler_too() -> None:
    async with _serving() as addresses:
        assert await _post(addresses, _pieces(100)) == (200, "102400")


async def test_a_declared_size_above_the_limit_is_refused_before_a_byte_of_it_came() -> None:
    async with (
        _serving() as addresses,
        _connected(addresses, _head(addresses, f"Content-Length: {_MIB + 1}")) as (
            reader,
            _,
        ),
    ):
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")


async def test_a_body_that_grows_above_the_limit_is_refused() -> None:
    async with (
        _serving() as addresses,
        _connected(addresses, _head(addresses, "Transfer-Encoding: chunked")) as (
            reader,
            writer,
        ),
    ):
        for _ in range(17):
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")


async def test_a_body_that_does_not_come_is_given_up_and_the_connection_with_it() -> None:
    async with (
        _serving(body_s=0.05, lingering_s=0.05) as addresses,
        _connected(addresses, _head(addresses, "Content-Length: 10") + "abc") as (reader, _),
    ):
        answer = await _to_the_end(reader)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"Connection: close" in answer


@pytest.mark.parametrize("said", ["", "GET /healthz HTTP/1.1\r\nHost: x", "GET / HTTP/1.1\r\nX-A: b\r\n"])
async def test_headers_that_do_not_come_end_the_connection(said: str) -> None:
    async with _serving(head_s=0.05) as addresses, _connected(addresses, said) as (reader, _):
        assert await _to_the_end(reader) == b""


async def test_a_connection_that_asked_in_time_is_kept_for_the_next_request() -> None:
    async with _serving(head_s=1.5, keepalive_s=30) as addresses, _connected(addresses) as (reader, writer):
        ask = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{addresses.port}\r\n\r\n".encode()
        writer.write(ask)
        assert (await reader.readuntil(b"ok\n")).startswith(b"HTTP/1.1 200 ")
        # Until the time that the first request's headers had is certainly over.
        async with _connected(addresses) as (silent, _):
            assert await silent.read() == b""
        writer.write(ask)
        assert (await reader.readuntil(b"ok\n")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("packing", ["deflate", "gzip"])
async def test_a_body_that_is_not_packed_as_it_says_is_refused_without_a_traceback(
    packing: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with _serving() as addresses:
        head = (f"Content-Encoding: {packing}", "Content-Length: 7", "Connection: close")
        said = _head(addresses, *head) + "\r\ndamaged"
        async with _connected(addresses, said) as (reader, _):
            assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize(
    "head", ["nonsense", "GET / HTTP/9", "GET / HTTP/1.1\r\nno colon", "GET \x00 HTTP/1.1"]
)
async def test_a_malformed_head_is_refused_without_a_traceback(
    head: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with _serving() as addresses, _connected(addresses, f"{head}\r\n\r\n") as (reader, _):
        assert b" 400 " in await reader.readline()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def test_an_idle_connection_is_closed() -> None:
    async with _serving(keepalive_s=0.5) as addresses, _connected(addresses) as (reader, writer):
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{addresses.port}\r\n\r\n".encode())
        assert (await reader.read()).endswith(b"ok\n")


async def test_one_connection_too_many_is_reported_and_a_free_place_is_used_again() -> None:
    async with _serving(connections=2) as addresses:
        async with (
            _connected(addresses, "GET"),
            _connected(addresses, "GET"),
            _connected(addresses) as (reader, _),
        ):
            assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        async with asyncio.timeout(60):
            while await _status_of_health(addresses) != 200:
                await SystemClock().sleep(0.01)


async def test_large_bodies_share_few_places_and_small_ones_need_none() -> None:
    async with _serving(large_bodies=1) as addresses:
        slow = _head(addresses, "Content-Length: 100000")
        async with _connected(addresses, slow + "x") as (_, first):
            async with asyncio.timeout(60):
                while (await _post(addresses, b"x" * 100_000))[0] != 503:
                    await SystemClock().sleep(0.01)
            assert await _post(addresses, b"x" * 1000) == (200, "1000")
            first.write(b"x" * 99_999)
            async with asyncio.timeout(60):
                while (await _post(addresses, b"x" * 100_000))[0] != 200:
                    await SystemClock().sleep(0.01)


async def test_a_forged_host_is_refused_before_its_body_is_read() -> None:
    async with _serving() as addresses:
        head = _head(addresses, "Content-Length: 1000000").replace("127.0.0.1", "evil.example.org")
        async with _connected(addresses, head) as (reader, _):
            assert (await reader.readline()).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("framing", ["Content-Length: 52428800", "Transfer-Encoding: chunked"])
async def test_health_answers_and_memory_stays_while_hundreds_crawl_and_hundreds_flood(framing: str) -> None:
    async with _child() as (process, addresses):
        assert await _status_of_health(addresses) == 200
        before = _rss(process)
        highest = before
        async with asyncio.TaskGroup() as group:
            crawl = [group.create_task(_crawl(addresses)) for _ in range(_STRANGERS)]
            flood = [group.create_task(_flood(addresses, framing)) for _ in range(_STRANGERS)]
            while not all(task.done() for task in flood):
                assert await _status_of_health(addresses) == 200
                highest = max(highest, _rss(process))
                await SystemClock().sleep(0.02)
            for task in crawl:
                task.cancel()
        assert {task.result() for task in flood} <= {b"413", b"503"}
        assert highest - before < _RISE, f"{(highest - before) / _MIB:.0f} MiB more"


async def _crawl(addresses: Addresses) -> None:
    """A header that never ends, a byte at a time."""
    async with _connected(addresses, "GET /healthz HTTP/1.1\r\nX-Slow: ") as (_, writer):
        with suppress(ConnectionError):
            while True:
                writer.write(b"x")
                await writer.drain()
                await SystemClock().sleep(0.2)


async def _flood(addresses: Addresses, framing: str) -> bytes:
    """50 MB in one body, whatever the server says meanwhile; the status that it said.

    On a bare socket: a stream that cannot write any more drops an answer that it did not read yet.
    """
    piece = b"x" * 65_536
    if "chunked" in framing:
        piece = b"10000\r\n" + piece + b"\r\n"
    loop = asyncio.get_running_loop()
    with socket() as connection:
        connection.setblocking(False)
        await loop.sock_connect(connection, ("127.0.0.1", addresses.port))
        await loop.sock_sendall(connection, _head(addresses, framing).encode())
        async with asyncio.TaskGroup() as group:
            said = group.create_task(loop.sock_recv(connection, 1024))
            with suppress(ConnectionError):
                for _ in range(800):
                    await loop.sock_sendall(connection, piece)
    return said.result()[9:12]


async def _status_of_health(addresses: Addresses) -> int:
    async with aiohttp.ClientSession() as session:
        try:
            async with asyncio.timeout(60), session.get(f"{addresses.url}/healthz") as response:
                return response.status
        except aiohttp.ClientError:
            return 0


@asynccontextmanager
async def _child() -> AsyncIterator[tuple[Process, Addresses]]:
    process = await create_subprocess_exec(sys.executable, "-c", _CHILD, stdout=PIPE)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield process, Addresses("127.0.0.1", port, ())
    finally:
        process.kill()
        await process.wait()


def _rss(process: Process) -> int:
    return next(_resident(process.pid)) * 1024


def _resident(pid: int) -> Iterator[int]:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            yield int(line.split()[1])
