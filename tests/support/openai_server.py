"""A fake of an OpenAI-compatible streaming server: real HTTP on loopback, scripted behaviour.

It speaks the wire format only; it checks no key and knows no models.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

DEFAULT_CHUNKS = ("Hello", " from", " the", " fake.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What the server does with one request."""

    chunks: tuple[str, ...] = DEFAULT_CHUNKS
    status: int = 200
    message: str = "the fake refuses"
    """The error text of a status that is not 200."""
    retry_after: str | None = None
    garbage: bool = False
    """Answer 200 with something that is no event stream of JSON."""
    hang_before: bool = False
    """Take the request and never answer."""
    hang_after: int | None = None
    """Stop talking after this many chunks, connection open."""
    cut_after: int | None = None
    """Drop the connection after this many chunks."""
    usage: bool = True
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came in."""

    body: Mapping[str, Any]
    authorization: str


@dataclass(slots=True)
class FakeOpenAiServer:
    """`async with FakeOpenAiServer() as server: LitellmClient(api_base=server.api_base, …)`."""

    script: deque[Behaviour] = field(default_factory=deque)
    """Taken from the left, one per request; a normal answer when empty."""
    requests: list[Received] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a request arrives; a test clears it."""
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client goes away in the middle of an answer."""
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(Received(body=body, authorization=request.headers.get("Authorization", "")))
        self.arrived.set()
        behaviour = self.script.popleft() if self.script else Behaviour()
        try:
            return await self._answer(request, behaviour)
        except (asyncio.CancelledError, ConnectionResetError):
            self.disconnected.set()
            raise

    async def _answer(self, request: web.Request, behaviour: Behaviour) -> web.StreamResponse:
        if behaviour.hang_before:
            await asyncio.Event().wait()
        if behaviour.status != 200:
            headers = {"Retry-After": behaviour.retry_after} if behaviour.retry_after is not None else {}
            error = {"error": {"message": behaviour.message, "code": behaviour.status}}
            return web.json_response(error, status=behaviour.status, headers=headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if behaviour.garbage:
            await response.write(b"data: <html>not json</html>\n\n")
            return response
        for index, text in enumerate(behaviour.chunks):
            if behaviour.hang_after == index:
                await asyncio.Event().wait()
            if behaviour.cut_after == index:
                _cut(request)
                return response
            await response.write(_event(_chunk({"content": text})))
        if behaviour.hang_after == len(behaviour.chunks):
            await asyncio.Event().wait()
        await response.write(_event(_chunk({}, finish_reason=behaviour.finish_reason)))
        if behaviour.usage:
            counts = {"prompt_tokens": 7, "completion_tokens": len(behaviour.chunks), "total_tokens": 0}
            await response.write(_event({**_chunk({}), "choices": [], "usage": counts}))
        await response.write(b"data: [DONE]\n\n")
        return response


def _cut(request: web.Request) -> None:
    transport = request.transport
    if transport is not None:
        transport.abort()


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _chunk(delta: Mapping[str, Any], *, finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}],
    }
