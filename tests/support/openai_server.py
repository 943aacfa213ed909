"""A fake of an OpenAI-compatible streaming server: real HTTP on loopback, scripted behaviour.

It implements the wire format only; it checks neither keys nor models.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

DEFAULT_CHUNKS = ("Hello", " from", " the", " fake.")
GARBAGE = b"data: <html>not json</html>\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What the server does with one request."""

    chunks: tuple[str, ...] = DEFAULT_CHUNKS
    status: int = 200
    message: str = "the fake refuses"
    """The error text of a status that is not 200."""
    retry_after: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    """Name and argument text of each tool that it asks for, after the chunks."""
    calls_in: int = 5
    """How many characters of arguments one fragment brings; 0: all at once."""
    code: str = ""
    """The error's own code, for a status that is not 200."""
    param: str = ""
    """The parameter that the error blames."""
    raw: bytes | None = None
    """Answer 200 with exactly these bytes."""
    raw_pieces: int = 0
    """How many bytes of `raw` are written at a time; 0: all at once."""
    content_type: str = "text/event-stream"
    endless: str = ""
    """Say this again and again, for ever."""
    document: bool = False
    """Answer with one JSON document, as an endpoint that does not stream."""
    hang_before: bool = False
    """Take the request and never answer."""
    hang_after: int | None = None
    """Stop talking after this many chunks, connection open."""
    cut_after: int | None = None
    """Drop the connection after this many chunks."""
    usage: bool = True
    finish_reason: str = ""
    """`tool_calls` with calls and `stop` without, unless something else is said."""

    @property
    def reason(self) -> str:
        return self.finish_reason or ("tool_calls" if self.calls else "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came in."""

    body: Mapping[str, Any]
    authorization: str


@dataclass(slots=True)
class FakeOpenAiServer:
    """`async with FakeOpenAiServer() as server: LitellmClient(api_base=server.api_base, …)`."""

    script: deque[Behaviour] = field(default_factory=deque)
    """Taken from the left, one per request."""
    default: Behaviour = field(default_factory=Behaviour)
    """For the requests after the script: a normal answer unless something else is said."""
    brain: Callable[[Mapping[str, Any]], Behaviour] | None = None
    """Decides, in place of `default`, by what the request's body says."""
    requests: list[Received] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a request arrives; a test clears it."""
    connections: set[object] = field(default_factory=set)
    """One for each connection that brought a request."""
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
        self.connections.add(request.transport)
        behaviour = self.script.popleft() if self.script else self._usual(body)
        try:
            return await self._answer(request, behaviour)
        except (asyncio.CancelledError, ConnectionResetError):
            self.disconnected.set()
            raise

    def _usual(self, body: Mapping[str, Any]) -> Behaviour:
        return self.default if self.brain is None else self.brain(body)

    async def _answer(self, request: web.Request, behaviour: Behaviour) -> web.StreamResponse:
        if behaviour.hang_before:
            await asyncio.Event().wait()
        if behaviour.status != 200:
            return _refusal(behaviour)
        if behaviour.document:
            return web.json_response(_document(behaviour))
        response = web.StreamResponse(headers={"Content-Type": behaviour.content_type})
        await response.prepare(request)
        if behaviour.raw is not None:
            step = behaviour.raw_pieces or len(behaviour.raw) or 1
            for start in range(0, len(behaviour.raw), step):
                await response.write(behaviour.raw[start : start + step])
            if behaviour.hang_after is not None:
                await asyncio.Event().wait()
            return response
        while behaviour.endless:
            await response.write(_event(_chunk({"content": behaviour.endless})))
            # A socket that takes everything at once would keep the loop for itself.
            await asyncio.sleep(0)
        await self._talk(request, response, behaviour)
        return response

    async def _talk(self, request: web.Request, response: web.StreamResponse, behaviour: Behaviour) -> None:
        for index, text in enumerate(behaviour.chunks):
            if behaviour.hang_after == index:
                await asyncio.Event().wait()
            if behaviour.cut_after == index:
                _cut(request)
                return
            await response.write(_event(_chunk({"content": text})))
        if behaviour.hang_after == len(behaviour.chunks):
            await asyncio.Event().wait()
        for delta in _call_deltas(behaviour):
            await response.write(_event(_chunk(delta)))
        await response.write(_event(_chunk({}, finish_reason=behaviour.reason)))
        if behaviour.usage:
            await response.write(_event({**_chunk({}), "choices": [], "usage": _usage(behaviour)}))
        await response.write(b"data: [DONE]\n\n")


def _refusal(behaviour: Behaviour) -> web.Response:
    headers = {"Retry-After": behaviour.retry_after} if behaviour.retry_after is not None else {}
    error = {
        "message": behaviour.message,
        "code": behaviour.code or behaviour.status,
        "param": behaviour.param or None,
    }
    return web.json_response({"error": error}, status=behaviour.status, headers=headers)


def _document(behaviour: Behaviour) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": "".join(behaviour.chunks),
        "tool_calls": [_opening(index, *call)["tool_calls"][0] for index, call in enumerate(behaviour.calls)],
    }
    choice = {"index": 0, "message": message, "finish_reason": behaviour.reason}
    return {**_chunk({}), "object": "chat.completion", "choices": [choice], "usage": _usage(behaviour)}


def _usage(behaviour: Behaviour) -> dict[str, int]:
    return {"prompt_tokens": 7, "completion_tokens": len(behaviour.chunks), "total_tokens": 0}


def _call_deltas(behaviour: Behaviour) -> Iterator[dict[str, Any]]:
    for index, (name, arguments) in enumerate(behaviour.calls):
        step = behaviour.calls_in or len(arguments) or 1
        yield _opening(index, name, "" if behaviour.calls_in else arguments)
        for start in range(0, len(arguments) if behaviour.calls_in else 0, step):
            fragment = {"arguments": arguments[start : start + step]}
            yield {"tool_calls": [{"index": index, "function": fragment}]}


def _opening(index: int, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]}


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
