"""A real aiohttp server with the web adapter in it, and a client that speaks the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer

from adapters.web.adapter import WebAdapter
from adapters.web.file_links import FileAccess
from adapters.web.security import token_matches
from adapters.web.settings import WebOptions
from pipeline.domain.clock import ManualClock
from tests.adapters.fakes import MemoryInbox, MemoryTimeline

TOKEN = "correct-horse"
CHAT = "c_" + "0123456789abcdef" * 2
PATIENCE_S = 60.0
Frame = dict[str, Any]


class WebHarness:
    """The adapter, its fakes, and the client side. Made by `serving`."""

    def __init__(
        self,
        directory: Path,
        *,
        timeline: MemoryTimeline | None = None,
        links: FileAccess | None = None,
        **changes: Any,
    ) -> None:
        static = directory / "static"
        static.mkdir(exist_ok=True)
        self.static = static
        self.media_dir = directory / "media"
        self.timeline = timeline or MemoryTimeline()
        self.inbox = MemoryInbox()
        self.clock = ManualClock()
        self.server: TestServer | None = None
        settings = WebOptions(
            bot_name="Parlour",
            token_check=lambda given: token_matches(given, TOKEN),
            allowed_hosts=lambda: {self.host},
            allowed_origins=lambda: {self.origin},
            media_dir=self.media_dir,
            text_chars=200,
            voice_bytes=200_000,
            voice_seconds=60,
            file_bytes=100_000,
            static_dir=static,
        )
        self.settings = replace(settings, **changes)
        self.adapter = WebAdapter(self.settings, self.timeline, self.clock, links)

    @property
    def host(self) -> str:
        assert self.server is not None
        return f"127.0.0.1:{self.server.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.host}"


class Page:
    """One client's socket."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket = socket

    async def say(self, **fields: Any) -> None:
        await self.socket.send_str(json.dumps(fields))

    async def hear(self) -> Frame:
        """The next frame; fails with the close code when the socket closed instead. Sound is a frame of
        the type `binary` with its `bytes`."""
        async with asyncio.timeout(PATIENCE_S):
            message = await self.socket.receive()
        if message.type is WSMsgType.BINARY:
            return {"type": "binary", "bytes": message.data}
        assert message.type is WSMsgType.TEXT, f"closed with {self.socket.close_code}"
        frame = json.loads(message.data)
        assert isinstance(frame, dict)
        return frame

    async def hear_until(self, kind: str) -> list[Frame]:
        """Frames up to and with the first of type `kind`."""
        frames = [await self.hear()]
        while frames[-1]["type"] != kind:
            frames.append(await self.hear())
        return frames

    async def hear_close(self) -> int | None:
        """The close code, after whatever frames come before it."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.socket.receive()).type is WSMsgType.TEXT:
                pass
        return self.socket.close_code

    async def ping(self) -> list[Frame]:
        """Everything that was queued for this page before a pong."""
        await self.say(type="ping")
        return (await self.hear_until("pong"))[:-1]


class Browser:
    """Opens pages of one harness."""

    def __init__(
        self,
        harness: WebHarness,
        client: TestClient[web.Request, web.Application],
        receiving: asyncio.Task[None] | None,
    ) -> None:
        self.harness = harness
        self.client = client
        self._receiving = receiving

    def stop(self) -> None:
        """Cancel the adapter's `run`, as the gateway's shutdown does."""
        if self._receiving is not None:
            self._receiving.cancel()

    async def connect(self) -> Page:
        """A socket that has not said hello."""
        return Page(await self.client.ws_connect("/ws", origin=self.harness.origin, max_msg_size=0))

    async def open(
        self, chat: str | None = CHAT, after: int = 0, **wishes: bool | str | None
    ) -> tuple[Page, list[Frame]]:
        """An authenticated socket, and the frames up to `ready`."""
        page = await self.connect()
        await page.say(type="hello", protocol=1, token=TOKEN, chat=chat, after=after, **wishes)
        return page, await page.hear_until("ready")


@asynccontextmanager
async def serving(harness: WebHarness, *, running: bool = True) -> AsyncIterator[Browser]:
    """Serve the harness's adapter; with `running` it also receives."""
    app = web.Application()
    app.add_routes([*harness.adapter.routes(), *harness.adapter.upload_routes()])
    harness.server = TestServer(app, host="127.0.0.1")
    async with TestClient(harness.server) as client, asyncio.TaskGroup() as group:
        receiving = group.create_task(harness.adapter.run(harness.inbox)) if running else None
        await asyncio.sleep(0)
        browser = Browser(harness, client, receiving)
        try:
            yield browser
        finally:
            browser.stop()
