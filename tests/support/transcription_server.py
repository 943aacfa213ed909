"""A fake of an OpenAI-compatible transcription service: real HTTP on loopback, scripted behaviour."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

SEGMENT = {
    "id": 0, "seek": 0, "start": 0.0, "end": 1.0, "text": " Hello from the service.", "tokens": [1],
    "temperature": 0.0, "avg_logprob": -0.25, "compression_ratio": 1.0, "no_speech_prob": 0.125,
}  # fmt: skip
VERBOSE: Mapping[str, Any] = {
    "task": "transcribe",
    "language": "english",
    "duration": 1.9,
    "text": "Hello from the service.",
    "segments": [SEGMENT],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What the service does with one request."""

    body: Mapping[str, Any] = field(default_factory=lambda: VERBOSE)
    status: int = 200
    hang: bool = False
    """Take the request and never answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came in."""

    fields: Mapping[str, str]
    file: bytes
    authorization: str


@dataclass(slots=True)
class FakeTranscriptionServer:
    """`async with FakeTranscriptionServer() as server: EndpointTranscriber(api_base=server.api_base, …)`."""

    script: deque[Behaviour] = field(default_factory=deque)
    """Taken from the left, one per request; a normal answer when empty."""
    plain_only: bool = False
    """Refuses everything but `json`, as some services do."""
    requests: list[Received] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file = form["file"]
        sent = b""
        if isinstance(file, web.FileField):
            with file.file:
                sent = file.file.read()
        self.requests.append(
            Received(
                fields={name: value for name, value in form.items() if isinstance(value, str)},
                file=sent,
                authorization=request.headers.get("Authorization", ""),
            )
        )
        self.arrived.set()
        behaviour = self.script.popleft() if self.script else Behaviour()
        if behaviour.hang:
            await asyncio.Event().wait()
        if behaviour.status != 200:
            words = f"refused, and your key was {request.headers.get('Authorization')}"
            return web.json_response({"error": {"message": words}}, status=behaviour.status)
        if form.get("response_format") != "verbose_json":
            return web.json_response({"text": behaviour.body["text"]})
        if self.plain_only:
            return web.json_response({"error": {"message": "no verbose_json here"}}, status=400)
        return web.json_response(dict(behaviour.body))
