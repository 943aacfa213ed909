"""The HTTP server: the channels' routes, health, readiness and metrics. One port, loopback by default."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import urlsplit

from aiohttp import web

from adapters.web.security import AttemptLimit, foreign_address_response, host_allowed, security_headers
from pipeline.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_MAX_BODY_BYTES = 1_048_576
_DEFAULT_PORTS = {"http": 80, "https": 443}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Addresses:
    """The names under which this server answers, known exactly once it listens."""

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
        """The exact `Host` headers that are ours."""
        return frozenset((*self._local_hosts(), *map(_netloc, self._public_origins)))

    def origins(self) -> frozenset[str]:
        """The exact `Origin` headers that are ours."""
        return frozenset((*(f"http://{host}" for host in self._local_hosts()), *self._public_origins))

    def _local_hosts(self) -> tuple[str, ...]:
        named = tuple(f"{name}:{self.port}" for name in _LOOPBACK_NAMES)
        return named if self.port != _DEFAULT_PORTS["http"] else (*named, *_LOOPBACK_NAMES)


class Server:
    """Serves until closed. `ready` and `metrics` are asked at every request."""

    def __init__(
        self,
        *,
        addresses: Addresses,
        routes: Iterable[web.RouteDef],
        ready: Callable[[], bool],
        metrics: Callable[[], bytes],
        token_check: Callable[[str], bool],
        attempts: AttemptLimit,
    ) -> None:
        self._addresses = addresses
        self._ready = ready
        self._metrics = metrics
        self._token_check = token_check
        self._attempts = attempts
        self._app = web.Application(middlewares=[self._guard], client_max_size=_MAX_BODY_BYTES)
        self._app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._serve_metrics),
                *routes,
            ]
        )
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen. Raises ConfigurationError when the address cannot be had."""
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=2.0)
        await runner.setup()
        site = web.TCPSite(runner, self._addresses.host, self._addresses.port)
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
        """Every route: our own Host only, and the security headers on every answer, errors included."""
        if not host_allowed(request, self._addresses.hosts()):
            return foreign_address_response()
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.status}: {error.reason}\n")
        except Exception:  # noqa: BLE001 - the reason belongs into the log, not into the answer
            _log.exception("a request failed", extra={"path": request.path})
            response = web.Response(status=500, text="500: the gateway's log says more\n")
        if not response.prepared:
            for name, value in security_headers().items():
                response.headers.setdefault(name, value)
        return response

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        return web.Response(text="ready\n") if self._ready() else web.Response(status=503, text="not ready\n")

    async def _serve_metrics(self, request: web.Request) -> web.Response:
        scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
        if self._attempts.locked():
            return web.Response(status=429, text="Too many wrong tokens; wait a minute.\n")
        if scheme.lower() != "bearer" or not self._token_check(presented.strip()):
            if presented:
                self._attempts.note_failure()
            return web.Response(
                status=401,
                text="Send the access token as 'Authorization: Bearer …'.\n",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return web.Response(
            body=self._metrics(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Cache-Control": "no-store"},
        )


def _netloc(origin: str) -> str:
    return urlsplit(origin).netloc
