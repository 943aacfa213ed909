"""Fetch a page of the public internet: every IP address is checked when the connection is made.

It keeps no cookies, uses no proxy and runs no script. The returned page is foreign text.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.tools.web_addresses import BadUrl, RequestUrl, public_only, read_url

MAX_REDIRECTS = 5
MAX_BODY_BYTES = 2_000_000
"""Bytes after decompression."""
_CHUNK_BYTES = 1 << 16
_DEADLINE_S = 20.0
_REACH_S = 3.0
_NAMED_CHARS = 80
NOT_MODIFIED = 304
"""The status of a page that is as it was, for a request that named a version."""
_VALIDATOR_CHARS = 256
_MOVED = frozenset({301, 302, 303, 307, 308})
_TEXTS = ("text/", "application/json", "application/xml", "application/xhtml+xml")
_HEADERS = {
    "User-Agent": "parlour (fetches one page for a person)",
    "Accept": "text/html, text/plain, application/json, application/xml;q=0.9, text/*;q=0.8",
    "Accept-Encoding": "gzip, deflate, identity",
}
_WINDOW = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""The IP addresses of a host name. Raises OSError where there are none."""


class WebFailed(Exception):
    """The page cannot be fetched; the text gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPage:
    """A server's response."""

    url: str
    """The final address, after redirects."""
    status: int
    media_type: str
    charset: str
    """The server's value; empty if it gives none."""
    body: bytes
    cut: bool = False
    """Whether the body was longer than `MAX_BODY_BYTES`."""
    etag: str = ""
    """The server's name for this version; empty without one."""
    modified: str = ""
    """When the server says that it was changed last; empty if it does not."""


class GuardedWeb:
    """Fetches each page over a new connection. `refused` is a check of IP addresses like `public_only`."""

    def __init__(
        self,
        clock: Clock,
        *,
        resolve: Resolve | None = None,
        refused: Callable[[str], str] = public_only,
        ports: Collection[int] = (80, 443),
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self._clock = clock
        self._resolve = resolve or _system_resolve
        self._refused = refused
        self._ports = frozenset(ports)
        self._deadline_s = deadline_s

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        redirects: int = MAX_REDIRECTS,
        may_reach: Callable[[str], bool] = lambda _host: True,
    ) -> WebPage:
        """The page at `url`, after at most `redirects` redirects, requested with these further headers. A
        redirect gets the same headers: with a secret among them, allow none. `may_reach` says whether the
        host of a redirect is allowed. Raises WebFailed with a readable reason."""
        try:
            async with self._clock.timeout(self._deadline_s):
                return await self._follow(read_url(url, self._ports), headers or {}, redirects, may_reach)
        except BadUrl as error:
            raise WebFailed(f"{error}.") from None
        except TimeoutError:
            raise WebFailed(f"The page did not come within {self._deadline_s:.0f} seconds.") from None
        except (aiohttp.ClientError, OSError, zlib.error) as error:
            raise WebFailed(_words(error)) from None

    async def reach(self, url: str) -> str:
        """Why no connection to the server of `url` can be made now; empty if one can. Sends nothing."""
        try:
            async with self._clock.timeout(_REACH_S):
                _, writer = await self.connect(read_url(url, self._ports))
        except BadUrl as error:
            return f"{error}."
        except TimeoutError:
            return f"The server did not answer within {_REACH_S:.0f} seconds."
        except OSError as error:
            return _words(error)
        writer.close()
        return ""

    async def connect(self, target: RequestUrl) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the server, if every IP address of its name is permitted. Raises OSError."""
        found = await _GuardedResolver(self._resolve, self._refused).resolve(target.host, target.port)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "no address")
        # The checked address, so that the name is not looked up again.
        return await asyncio.open_connection(found[0]["host"], target.port)

    async def _follow(
        self, target: RequestUrl, headers: Mapping[str, str], redirects: int, may_reach: Callable[[str], bool]
    ) -> WebPage:
        connector = aiohttp.TCPConnector(
            resolver=_GuardedResolver(self._resolve, self._refused),
            socket_factory=self._socket,
            use_dns_cache=False,
            force_close=True,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers={**_HEADERS, **headers},
            timeout=aiohttp.ClientTimeout(total=None),
        )
        async with session:
            for _ in range(redirects + 1):
                async with session.get(target.url, allow_redirects=False) as response:
                    if response.status not in _MOVED:
                        return await _page(target, response)
                    if not redirects:
                        raise WebFailed("The server redirects elsewhere.")
                    target = self._next(target, response)
                    if not may_reach(target.host):
                        raise WebFailed(
                            f"The page redirects to {target.host}, which the security policy closes."
                        )
        raise WebFailed(f"The page redirects more than {redirects} times.")

    def _next(self, target: RequestUrl, response: aiohttp.ClientResponse) -> RequestUrl:
        location = response.headers.get("Location", "")
        if not location:
            raise WebFailed(f"The server answers {response.status} and does not say where the page is.")
        try:
            return read_url(urljoin(target.url, location).partition("#")[0], self._ports)
        except ValueError as error:
            raise WebFailed(f"The page redirects to where nothing is fetched: {error}.") from None

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for a checked address: the final check, of the address that the socket connects to."""
        family, kind, protocol, _, address = info
        why = self._refused(str(address[0]))
        if not why and address[1] not in self._ports:
            why = f"port {address[1]} is not fetched from"
        if why:
            raise _Refused(f"Nothing is fetched from {address[0]}: {why}.")
        return socket.socket(family=family, type=kind, proto=protocol)


class _Refused(OSError):
    """A connection to this address is refused; the text is for the model."""


class _GuardedResolver(AbstractResolver):
    """Looks up a name for every connection. One refused address of a name refuses the name."""

    def __init__(self, resolve: Resolve, refused: Callable[[str], str]) -> None:
        self._resolve = resolve
        self._refused = refused

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family  # every address is checked, whatever family is requested
        addresses = await self._resolve(host)
        for address in addresses:
            if why := self._refused(address):
                raise _Refused(f"Nothing is fetched from {host}, which is at {address}: {why}.")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Do nothing: it has no resources."""


async def _system_resolve(host: str) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


async def _page(target: RequestUrl, response: aiohttp.ClientResponse) -> WebPage:
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if response.status == NOT_MODIFIED:
        return WebPage(url=target.url, status=NOT_MODIFIED, media_type="", charset="", body=b"")
    if not (media_type.startswith(_TEXTS) or media_type.endswith(("+json", "+xml"))):
        raise WebFailed(f"There is no text at this address, but {_named(media_type) or 'something unnamed'}.")
    body, cut = await _body(response)
    return WebPage(
        url=target.url,
        status=response.status,
        media_type=media_type,
        charset=_charset(response.headers.get("Content-Type", "")),
        body=body,
        cut=cut,
        etag=_validator(response, "ETag"),
        modified=_validator(response, "Last-Modified"),
    )


def _validator(response: aiohttp.ClientResponse, header: str) -> str:
    """A header that a later request may give back; empty for one that is too long to keep."""
    value = response.headers.get(header, "")
    return value if len(value) <= _VALIDATOR_CHARS else ""


def _named(value: str) -> str:
    """A header's value for display: whole or not at all, because half of it could be half a secret."""
    return value if len(value) <= _NAMED_CHARS else ""


def _charset(content_type: str) -> str:
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")[:40]
    return ""


async def _body(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """The decompressed body, and whether it was cut, so that a long one cannot fill the memory."""
    packing = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packing not in ("", "identity", *_WINDOW):
        raise WebFailed(
            f"The server packs the page as {_named(packing) or 'it likes'}, which is not understood here."
        )
    unpack = zlib.decompressobj(_WINDOW[packing]) if packing in _WINDOW else None
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        room = MAX_BODY_BYTES + 1 - len(body)
        body += chunk[:room] if unpack is None else unpack.decompress(chunk, room)
        if len(body) > MAX_BODY_BYTES:
            return bytes(body[:MAX_BODY_BYTES]), True
    return bytes(body), False


def _words(error: BaseException) -> str:
    """Why a connection failed; the guard's own reason where the guard refused it."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or current in seen:
            continue
        seen.append(current)
        if isinstance(current, _Refused):
            return str(current)
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(current.exceptions)
        waiting.extend((current.__cause__, current.__context__, getattr(current, "os_error", None)))
    if isinstance(error, zlib.error):
        return "The page is packed wrongly and cannot be read."
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "The server's certificate is not trusted."
    if isinstance(error, aiohttp.ClientConnectorDNSError | socket.gaierror):
        return "There is no such host."
    return f"The page cannot be fetched ({type(error).__name__})."
