"""A proxy for a library with a separate HTTP client: its connections pass the checks of `GuardedWeb`.

It listens on loopback, requires a password, tunnels TLS to port 443 and reads nothing of it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from pipeline.tools.web_addresses import BadUrl, read_url
from pipeline.tools.web_client import GuardedWeb

MAX_BYTES = 8_000_000
"""The most that one proxy passes on, in both directions together."""
_CHUNK_BYTES = 1 << 16
_HEAD_BYTES = 16_384
_HEAD_S = 5.0
_TLS_PORT = 443


@asynccontextmanager
async def guarded_proxy(web: GuardedWeb) -> AsyncIterator[str]:
    """The address of a proxy, with its user name and password; it ends, with its connections, with the
    block."""
    password = secrets.token_urlsafe(24)
    proxy = _Proxy(web, password)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=_HEAD_BYTES)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://parlour:{password}@127.0.0.1:{port}"
    finally:
        server.close()
        proxy.close()


class _Proxy:
    def __init__(self, web: GuardedWeb, password: str) -> None:
        self._web = web
        self._allowed = b"Basic " + base64.b64encode(f"parlour:{password}".encode())
        self._left = MAX_BYTES
        self._writers: set[asyncio.StreamWriter] = set()

    def close(self) -> None:
        """Cut all connections."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the library."""
        with self._kept(writer):
            answer = await self._tunnel(reader, writer)
            if answer:
                writer.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                with contextlib.suppress(OSError):
                    await writer.drain()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Carry the connection to its end; or the status line that refuses it."""
        try:
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, TimeoutError):
            return "400 Bad Request"
        lines = head.split(b"\r\n")
        headers = dict(_header(line) for line in lines[1:])
        if not hmac.compare_digest(headers.get(b"proxy-authorization", b""), self._allowed):
            return "407 Proxy Authentication Required"
        method, _, rest = lines[0].partition(b" ")
        host, _, port = rest.partition(b" ")[0].decode("latin-1").rpartition(":")
        if method != b"CONNECT" or port != str(_TLS_PORT):
            return "403 Forbidden"
        try:
            far_reader, far_writer = await self._web.connect(read_url(f"https://{host}/"))
        except (BadUrl, OSError):
            return "403 Forbidden"
        with self._kept(far_writer):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as both:
                both.create_task(self._carry(reader, far_writer, far_writer.transport.abort))
                both.create_task(self._carry(far_reader, writer, writer.transport.abort))
        return ""

    async def _carry(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, cut: Callable[[], None]
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK_BYTES):
                self._left -= len(data)
                if self._left < 0:
                    break
                target.write(data)
                await target.drain()
        # A half-open tunnel is of no use to a request and its response.
        cut()

    @contextlib.contextmanager
    def _kept(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        self._writers.add(writer)
        try:
            yield
        finally:
            self._writers.discard(writer)
            writer.close()


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()
