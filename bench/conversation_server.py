"""A fake model over HTTP in a separate process, which streams the same answer to each request.

`python -m bench.conversation_server PORT TOKENS` serves chat completions until it is ended. Every token
is a separate event and write, with a pause between them, as models send them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from aiohttp import web

_PAUSE_S = 0.02
"""Between tokens: fifty a second, as hosted models send them."""


class Server:
    """Streams `tokens` words to every request."""

    def __init__(self, tokens: int) -> None:
        chunks = [{"content": f" word{number % 10}"} for number in range(tokens)]
        self._events = [_event(_choice(delta, None)) for delta in chunks]
        usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": tokens + 10}
        self._end = (
            _event(_choice({}, "stop"))
            + _event({**_choice({}, None), "choices": [], "usage": usage})
            + b"data: [DONE]\n\n"
        )

    def application(self) -> web.Application:
        """The server's one route."""
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        app.on_startup.append(self._announce)
        return app

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self._events:
            await response.write(event)
            await asyncio.sleep(_PAUSE_S)
        await response.write(self._end)
        return response

    async def _announce(self, _app: web.Application) -> None:
        print("ready", flush=True)


def _choice(delta: Mapping[str, str], finish_reason: str | None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "bench",
        "choices": [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}],
    }


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


if __name__ == "__main__":
    web.run_app(
        Server(int(sys.argv[2])).application(),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        print=lambda _: None,
    )
