"""The Bot API through python-telegram-bot, with raw JSON in and out, and the token kept out of the SDK.

Telegram's token is part of every address. The SDK only gets a placeholder; the transport inserts the real
token, so no log line and no exception can contain it, and a rotated token takes effect at once.
The callers know what the methods mean.
"""

from __future__ import annotations

import functools
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
from telegram import Bot
from telegram.error import EndPointNotFound, TelegramError, TimedOut
from telegram.request import HTTPXRequest

from adapters.telegram.settings import TelegramOptions
from adapters.withheld import check_before_request
from pipeline.domain.clock import Clock

_PLACEHOLDER = "0:token"
_CONNECT_S = 10.0
_CALL_S = 20.0
_UPLOAD_S = 60.0
_FILE_S = 150.0
"""For one of the largest files over a slow line; less than the gateway's limit for a call."""
_READ_S = 160.0
"""Longer than every deadline: the clock decides when a call times out."""
_POOL_S = 30.0
_CONNECTIONS = 64
_FILES = frozenset({"document", "photo", "audio", "video"})
_NEW_METHODS = ("/sendMessageDraft",)


class FloodWait(TelegramError):
    """429: too many calls. `seconds` is what Telegram asks to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Too many requests: retry after {seconds:g} s")
        self.seconds = seconds


class TelegramApi:
    """Keeps connections open while they are used: by the receiving loop for long, by a late reply briefly."""

    def __init__(self, settings: TelegramOptions, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._users = 0
        self._open: _Connections | None = None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Keep the connections open for this block."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and self._open is not None:
                connections, self._open = self._open, None
                await connections.close()

    async def call(self, method: str, params: Mapping[str, Any], *, wait_s: float = 0.0) -> Any:
        """The method's `result`. `wait_s`: additional seconds that the answer may take. Raises
        TelegramError."""
        deadline_s = wait_s + (_UPLOAD_S if "voice" in params else _CALL_S)
        if not _FILES.isdisjoint(params):
            deadline_s = _FILE_S
        async with self.connected():
            try:
                async with self._clock.timeout(deadline_s):
                    return await self._connections().bot.call(method, params)
            except TimeoutError:
                raise TimedOut from None

    @asynccontextmanager
    async def file(self, path: str) -> AsyncIterator[httpx.Response]:
        """The response for a file named by getFile, its body unread. Raises httpx.HTTPError, and
        TimeoutError after a minute."""
        async with self.connected(), self._clock.timeout(_UPLOAD_S):
            url = f"{self._settings.server}/file/bot{_PLACEHOLDER}/{quote(path)}"
            async with self._connections().files.stream("GET", url) as response:
                yield response

    def _connections(self) -> _Connections:
        if self._open is None:
            self._open = _Connections(self._settings)
        return self._open


class _Connections:
    def __init__(self, settings: TelegramOptions) -> None:
        # Polls have separate connections: a long poll never delays an answer.
        self._requests = [_request(settings.token, size) for size in (2, _CONNECTIONS)]
        polls, calls = self._requests
        base = f"{settings.server}/bot"
        self.bot = _PlainBot(_PLACEHOLDER, base_url=base, get_updates_request=polls, request=calls)
        timeout = httpx.Timeout(_READ_S, connect=_CONNECT_S)
        transport = _TokenTransport(settings.token, size=_CONNECTIONS)
        self.files = httpx.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False)

    async def close(self) -> None:
        await self.files.aclose()
        for request in self._requests:
            await request.shutdown()


class _PlainBot(Bot):
    """The SDK's client without its object model: updates of an unknown kind must not be lost, and an
    unreadable update must not block the others."""

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        return await self._post(method, dict(params))


class _Request(HTTPXRequest):
    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        code, payload = await super().do_request(*args, **kwargs)
        if code == 429:
            raise FloodWait(_retry_after(payload))
        if code == 404 and str(kwargs.get("url", "")).endswith(_NEW_METHODS):
            # The SDK reports an invalid token; a self-hosted older server answers the same to new methods.
            raise EndPointNotFound("Not Found")
        return code, payload

    @staticmethod
    def parse_json_payload(payload: bytes) -> Any:
        """Parse without logging: the SDK's own parser logs an unreadable response, including people's
        messages."""
        try:
            return json.loads(payload.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise TelegramError("Invalid server response") from None


class _TokenTransport(httpx.AsyncBaseTransport):
    """Inserts the token into the address when a request is sent."""

    def __init__(self, token: Callable[[], str], *, size: int) -> None:
        self._token = token
        limits = httpx.Limits(max_connections=size)
        self._inner = httpx.AsyncHTTPTransport(verify=_certificates(), limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        token = quote(self._token(), safe=":").encode()
        path = request.url.raw_path.replace(f"/bot{_PLACEHOLDER}/".encode(), b"/bot" + token + b"/", 1)
        leaving = httpx.Request(
            request.method,
            request.url.copy_with(raw_path=path),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "trace": _check},
        )
        return await self._inner.handle_async_request(leaving)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _check(event: str, _about: Mapping[str, Any]) -> None:
    """httpcore's `trace`: the check once there is a connection, before the request is written to it."""
    if event.endswith("send_request_headers.started"):
        check_before_request()


@functools.cache
def _certificates() -> ssl.SSLContext:
    # Loading them takes tens of milliseconds: once per process, not once per connection.
    return httpx.create_ssl_context()


def _request(token: Callable[[], str], size: int) -> _Request:
    return _Request(
        connection_pool_size=size,
        read_timeout=_READ_S,
        write_timeout=_UPLOAD_S,
        connect_timeout=_CONNECT_S,
        pool_timeout=_POOL_S,
        media_write_timeout=_FILE_S,
        httpx_kwargs={"transport": _TokenTransport(token, size=size)},
    )


def _retry_after(payload: bytes) -> float:
    try:
        seconds = json.loads(payload)["parameters"]["retry_after"]
    except (ValueError, KeyError, TypeError):
        return 1.0
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else 1.0
