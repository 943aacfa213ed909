"""A fake of an OpenAI-compatible embeddings endpoint: real HTTP on loopback, vectors of hashed terms."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from pipeline.memory.embedding import HashedEmbedder


@dataclass(slots=True)
class FakeEmbeddingServer:
    """`async with FakeEmbeddingServer() as server: LitellmEmbedder(api_base=server.api_base, …)`."""

    requests: list[Mapping[str, Any]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    keys: list[str] = field(default_factory=list)
    status: int = 200
    hang: bool = False
    """Take requests and never answer."""
    short: bool = False
    """Answer with one vector too few."""
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/embeddings", self._embed)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.requests.append(body)
        self.arrived.set()
        self.keys.append(request.headers.get("Authorization", ""))
        if self.hang:
            await asyncio.Event().wait()
        if self.status != 200:
            return web.json_response({"error": {"message": "the fake refuses"}}, status=self.status)
        vectors = await HashedEmbedder().passages(body["input"])
        rows = [
            {"object": "embedding", "index": index, "embedding": list(vector)}
            for index, vector in enumerate(vectors)
        ]
        rows.reverse()  # the order says nothing, the index does
        data = rows[1:] if self.short else rows
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": usage})
