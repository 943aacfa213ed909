"""Follow a run as server-sent events, from the durable record alone: a stream can be taken up again anywhere,
also after a restart of the gateway.

`log` has one entry of the log, and its number as the event's id. `status` has the rest of the record; it is
sent at the beginning, after each change, and at the end. A client that sends the last id it has seen as
Last-Event-ID gets the entries after it, and then the status. The last event's id is `end`; a client that
sends it gets 204.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from adapters.api.ports import RunView
from adapters.api.problems import RequestRefused, invalid
from adapters.api.record import status_to_plain
from adapters.api.run_service import Found, RunService
from adapters.api.settings import ApiOptions, Token
from adapters.api.wakes import Wakes, Woken
from pipeline.domain.clock import Clock

END = "end"
LOOK_AGAIN_S = 2.0
"""A step may become durable a moment after its event."""
_COMMENT_EVERY_S = 15.0
_RECONNECT_MS = 2_000
_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}


class RunStreams:
    """The open streams, at most `max_streams` for each token."""

    def __init__(self, settings: ApiOptions, service: RunService, wakes: Wakes, clock: Clock) -> None:
        self._settings = settings
        self._service = service
        self._wakes = wakes
        self._clock = clock
        self._open: dict[str, int] = {}

    async def serve(self, request: web.Request, token: Token, found: Found) -> web.StreamResponse:
        """Stream the run until it ends, the client leaves or the gateway stops. Raises RequestRefused."""
        seen = _last_seen(request)
        if seen is None:
            return web.Response(status=204)
        if self._open.get(token.name, 0) >= self._settings.max_streams:
            what = f"This token has {self._settings.max_streams} streams open."
            raise RequestRefused(429, what, headers={"Retry-After": "5"})
        self._open[token.name] = self._open.get(token.name, 0) + 1
        try:
            return await self._stream(request, token, found, seen)
        finally:
            self._open[token.name] -= 1

    async def _stream(
        self, request: web.Request, token: Token, found: Found, seen: int
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={**self._settings.headers, **_HEADERS})
        with self._wakes.waiting(found.thread) as woken:
            view = await self._service.view(found)
            await response.prepare(request)
            # A stream that has begun can only end; the client takes it up again.
            with contextlib.suppress(ConnectionError, RequestRefused):
                await self._follow(response, request, token, found, view, seen, woken)
        return response

    async def _follow(
        self,
        response: web.StreamResponse,
        request: web.Request,
        token: Token,
        found: Found,
        view: RunView,
        seen: int,
        woken: Woken,
    ) -> None:
        """Write what is new until the run is over. Raises ConnectionError and RequestRefused."""
        await response.write(f"retry: {_RECONNECT_MS}\n\n".encode())
        sent: Mapping[str, Any] | None = None
        written_at = self._clock.monotonic()
        while not self._wakes.closing and _is_open(request):
            parts = [
                _event("log", str(number), entry)
                for number, entry in enumerate(view.logs[seen:], start=seen + 1)
            ]
            seen = max(seen, len(view.logs))
            status = status_to_plain(view, found.questions)
            if status != sent or view.over:
                parts.append(_event("status", END if view.over else str(seen), status))
                sent = status
            now = self._clock.monotonic()
            if not parts and now - written_at >= _COMMENT_EVERY_S:
                parts.append(b": still there\n\n")
            if parts:
                await response.write(b"".join(parts))
                written_at = now
            if view.over:
                return
            await woken.wait(LOOK_AGAIN_S)
            found = await self._service.find(token, str(found.thread.topic))
            view = await self._service.view(found)


def _is_open(request: web.Request) -> bool:
    return request.transport is not None and not request.transport.is_closing()


def wanted(request: web.Request) -> bool:
    """Whether a request asks for a stream."""
    accepts = ",".join(request.headers.getall("Accept", []))
    return any(one.partition(";")[0].strip().lower() == "text/event-stream" for one in accepts.split(","))


def _last_seen(request: web.Request) -> int | None:
    """The number of the last log entry that the client has; None if it has the end."""
    given = request.headers.get("Last-Event-ID", "").strip()
    if given == END:
        return None
    if not given:
        return 0
    if not (given.isascii() and given.isdigit() and len(given) <= 9):
        raise invalid("Last-Event-ID", "send the id of an event of this stream")
    return int(given)


def _event(kind: str, identity: str, body: Mapping[str, Any]) -> bytes:
    # JSON has no line breaks here, so that one line is enough.
    return f"event: {kind}\nid: {identity}\ndata: {json.dumps(body, ensure_ascii=True)}\n\n".encode()
