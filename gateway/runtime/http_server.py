"""Serve the channels' routes, health, readiness and metrics over HTTP: one port, loopback by default."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from adapters.web.attempts import WrongTokens
from adapters.web.security import foreign_address_response, host_allowed, security_headers
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass

_log = logging.getLogger(__name__)

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}

_UNREAD = frozenset({408, 413, 503})
"""Refusals of a body that was not read to its end: the connection cannot be used again."""

_CLIENTS_FAULTS = (web.RequestPayloadError, HttpProcessingError)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits on the resources that a stranger can use. Not settings: no platform or page comes near them."""

    connections: int = 800
    """Concurrent connections over all routes. Each takes a file descriptor; a process usually has 1,024. The
    others are for the store, the models and the calls to the platforms."""
    head_s: float = 10.0
    """Seconds from the connection to the end of the first request's headers."""
    keepalive_s: float = 75.0
    """Seconds between two requests: longer than the 60 after which proxies usually close a connection, so
    that the proxy closes it first. The next request's headers have this time too."""
    body_s: float = 5.0
    """Seconds for a whole body, before its handler is called."""
    body_bytes: int = 1_048_576
    small_body_bytes: int = 65_536
    """Bodies up to this size are read without a limit on their number."""
    large_bodies: int = 8
    """Bodies that are larger, or of unknown size, and are read at the same time."""
    read_bytes: int = 16_384
    """Bytes read ahead of a handler, per connection."""
    lingering_s: float = 1.0
    """Seconds for a client to notice a refusal while it still sends."""


class Addresses:
    """The hosts and origins of this server; exact once it listens."""

    def __init__(self, host: str, port: int, public_origins: Sequence[str]) -> None:
        self.host = host
        self.port = port
        self._public_origins = tuple(public_origins)

    @property
    def url(self) -> str:
        """The address to open in a browser on this machine."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::", "localhost") else self.host  # noqa: S104 - compared, not bound
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}"

    def hosts(self) -> frozenset[str]:
        """The exact `Host` headers of this server."""
        return frozenset((*self._local_hosts(), *map(_netloc, self._public_origins)))

    def origins(self) -> frozenset[str]:
        """The exact `Origin` headers of this server's pages."""
        return frozenset((*(f"http://{host}" for host in self._local_hosts()), *self._public_origins))

    def _local_hosts(self) -> tuple[str, ...]:
        named = tuple(f"{name}:{self.port}" for name in _LOOPBACK_NAMES)
        return named if self.port != _DEFAULT_PORTS["http"] else (*named, *_LOOPBACK_NAMES)


class Server:
    """Serves until closed. Calls `ready` and `metrics` at every request for them."""

    def __init__(
        self,
        *,
        addresses: Addresses,
        routes: Iterable[web.RouteDef],
        webhooks: Iterable[web.RouteDef] = (),
        ready: Callable[[], bool],
        metrics: Callable[[], bytes],
        token_check: Callable[[str], bool],
        wrong_tokens: WrongTokens,
        channels: Callable[[], Iterable[str]] = tuple,
        limits: ServerLimits | None = None,
    ) -> None:
        """`token_check` says whether a token may read the metrics. `channels` returns a public line for each
        channel. `webhooks` are routes that read their bodies themselves, within the same limits, after they
        checked the sender by the headers."""
        self._addresses = addresses
        self._ready = ready
        self._metrics = metrics
        self._token_check = token_check
        self._wrong_tokens = wrong_tokens
        self._channels = channels
        self._limits = limits or ServerLimits()
        self._large_bodies = asyncio.Semaphore(self._limits.large_bodies)
        own_bodies = tuple(webhooks)
        self._webhooks = frozenset(route.handler for route in own_bodies)
        self._app = web.Application(middlewares=[self._guard], client_max_size=self._limits.body_bytes)
        self._app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._serve_metrics),
                *routes,
                *own_bodies,
            ]
        )
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises ConfigurationError when the address is not available."""
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=2.0)
        await runner.setup()
        site = _Site(runner, self._addresses.host, self._addresses.port, self._limits)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise ConfigurationError(
                f"server.port: cannot listen on {self._addresses.host}:{self._addresses.port} "
                f"({os.strerror(error.errno or 0)}); stop the program that uses it or set another server.port"
            ) from error
        self._runner = runner
        self._addresses.port = runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening and end the open connections. Safe to call twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Accept only this server's Host and set the security headers on every answer, errors included."""
        if isinstance(request.protocol, _Connection):
            request.protocol.head_came()
        if not host_allowed(request, self._addresses.hosts()):
            return foreign_address_response()
        try:
            if request.match_info.handler not in self._webhooks:
                await self._read_body(request)
            response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.status}: {error.reason}\n")
            if error.status in _UNREAD:
                response.force_close()
        except Exception:  # noqa: BLE001 - the reason belongs in the log, not in the answer
            _log.exception("a request failed", extra={"path": request.path})
            response = web.Response(status=500, text="500: the gateway's log says more\n")
        if not response.prepared:
            for name, value in security_headers().items():
                response.headers.setdefault(name, value)
        return response

    async def _read_body(self, request: web.Request) -> None:
        """Read the body, which the request keeps for its handler. Raises web.HTTPException for a body that is
        too large, too slow, or one too many at a time: an unknown sender may use little memory."""
        limits, size = self._limits, request.content_length
        if not request.can_read_body:
            return
        if size is not None and size > limits.body_bytes:
            raise web.HTTPRequestEntityTooLarge(limits.body_bytes, size)
        # A compressed body is small only until it is unpacked.
        packed = "Content-Encoding" in request.headers
        small = size is not None and size <= limits.small_body_bytes and not packed
        if not small and self._large_bodies.locked():
            # Waiting would keep the received bytes in memory.
            raise web.HTTPServiceUnavailable
        try:
            async with asyncio.timeout(limits.body_s):
                if small:
                    await request.read()
                else:
                    async with self._large_bodies:
                        await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        except _CLIENTS_FAULTS:
            # The body does not match its Content-Encoding. Anybody can send one, so no traceback.
            raise web.HTTPBadRequest from None

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        ready = self._ready()
        lines = ("ready" if ready else "not ready", *self._channels())
        return web.Response(status=200 if ready else 503, text="\n".join(lines) + "\n")

    async def _serve_metrics(self, request: web.Request) -> web.Response:
        scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._token_check(presented.strip()):
            too_many = bool(presented) and self._wrong_tokens.note(request.remote)
            refusal = web.Response(
                status=429 if too_many else 401,
                text="Send server.metrics_token or the access token as 'Authorization: Bearer …'.\n",
                headers={"WWW-Authenticate": "Bearer"},
            )
            # One guess per connection.
            refusal.force_close()
            return refusal
        return web.Response(
            body=self._metrics(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Cache-Control": "no-store"},
        )


class _Site(web.BaseSite):
    """Listens, and gives each connection a handler up to the limit of connections."""

    def __init__(self, runner: web.AppRunner, host: str, port: int, limits: ServerLimits) -> None:
        super().__init__(runner)
        self._address = (host, port)
        self._limits = limits

    @property
    def name(self) -> str:
        return "http://{}:{}".format(*self._address)

    async def start(self) -> None:
        await super().start()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(partial(self._connect, loop), *self._address, backlog=128)

    def _connect(self, loop: asyncio.AbstractEventLoop) -> asyncio.Protocol:
        server = self._runner.server
        # A closing site no longer has a server.
        if server is None or len(server.connections) >= self._limits.connections:
            return _Refusal()
        return _Connection(server, loop, self._limits)


class _Connection(web.RequestHandler):
    """aiohttp's connection, closed when the first request's headers do not arrive in time."""

    __slots__ = ("_head_s", "_late")

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, limits: ServerLimits) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # AppRunner passes None for no access log
            keepalive_timeout=limits.keepalive_s,
            lingering_time=limits.lingering_s,
            read_bufsize=limits.read_bytes,
        )
        self._head_s = limits.head_s
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._late = asyncio.get_running_loop().call_later(self._head_s, self.force_close)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Skip tracebacks of a client's mistakes: otherwise anybody could fill the log."""
        if isinstance(kw.get("exc_info"), _CLIENTS_FAULTS):
            _log.debug("a request could not be read: %s", type(kw["exc_info"]).__name__)
        else:
            super().log_exception(*args, **kw)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.head_came()
        super().connection_lost(exc)

    def head_came(self) -> None:
        """Stop the header timer: the headers are complete, and the body has separate limits."""
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Refusal(asyncio.Protocol):
    """A connection over the limit: answered with a refusal and closed at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            transport.write(
                b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            )
        transport.close()


def _netloc(origin: str) -> str:
    return urlsplit(origin).netloc
