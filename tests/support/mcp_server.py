"""A real MCP server on the official SDK, with tools that fail as servers do.

`python -m tests.support.mcp_server` serves on its pipes, `over_http` in this process.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from tests.support.pictures import MP3, png

server = MCPServer("weather")


@server.tool(description="The weather in a city.\x00\u202e" + " More." * 500)
def weather(city: str) -> str:
    return f"It rains in {city}."


@server.tool(name="odd name: \u00fcber/tool.v2!")
def odd() -> str:
    """A name that no provider takes."""
    return "odd"


@server.tool()
def environment() -> dict[str, str]:
    """The server's environment."""
    return dict(os.environ)  # noqa: TID251 - a separate program, which shows its environment


@server.tool()
def blurt() -> str:
    """The key that it was given, in two places of a long text."""
    key = os.environ["KEY"]  # noqa: TID251 - a separate program
    return "word " * 957 + key + " " + "word " * 38 + key + " word" * 30_000


@server.tool()
def complain(before: int) -> str:
    """The same as its last words."""
    words = "w" * before + os.environ["KEY"] + " word" * 100  # noqa: TID251 - as above
    os.write(2, words.encode() + b"\n")
    os._exit(3)


@server.tool()
def pid() -> str:
    """The process, and a child of it that would outlive it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
    return f"{os.getpid()} {child.pid}"


@server.tool()
def big(megabytes: int) -> str:
    """A result of many megabytes."""
    return "x" * (megabytes * 1_000_000)


@server.tool()
def crash() -> str:
    """The end, in the middle of a call."""
    os.write(2, b"out of cheese\n")
    os._exit(3)


@server.tool()
def fail() -> str:
    """A tool's own failure."""
    raise RuntimeError("no such city")


@server.tool()
async def hang() -> str:
    """No answer, ever."""
    os.write(2, b"hanging\n")
    await asyncio.Event().wait()
    return "never"


@server.tool()
async def deaf() -> str:
    """No answer, and SIGTERM is ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(2, b"hanging\n")
    while True:
        time.sleep(60)  # noqa: TID251, ASYNC251 - it is to block everything


@server.tool()
def chatter() -> str:
    """Prints where only messages belong."""
    os.write(1, b"this is no message\n")
    return "said"


@server.tool()
def decline() -> str:
    """A refusal under the number that the SDK uses for a lost connection."""
    raise MCPError(code=-32000, message="the quota of this month is used up")


@server.tool()
def draw() -> list[ContentBlock]:
    """A chart, its sound, its data, and what is no base64."""
    blob = BlobResourceContents(
        uri="file:///tmp/sales%20of%20june.csv", mime_type="text/csv", blob=_encoded(b"a,b\n1,2\n")
    )
    words = TextResourceContents(uri="file:///notes.txt", text="Sales rose.")
    return [
        TextContent(type="text", text="The chart of June."),
        ImageContent(type="image", data=_encoded(png(640, 480)), mime_type="image/png"),
        AudioContent(type="audio", data=_encoded(MP3), mime_type="audio/mpeg"),
        EmbeddedResource(type="resource", resource=blob),
        EmbeddedResource(type="resource", resource=words),
        ResourceLink(type="resource_link", name="report", uri="https://reports.example/june"),
        ImageContent(type="image", data="not base64!", mime_type="image/png"),
    ]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@server.tool()
def nothing() -> None:
    """Says nothing."""


def entry(*arguments: str, **more: Any) -> dict[str, Any]:
    """The server's entry in an mcp.json."""
    return {"command": sys.executable, "args": ["-m", "tests.support.mcp_server", *arguments], **more}


@contextmanager
def over_http() -> Iterator[str]:
    """Run the server on a local port in a separate thread; its address."""
    sock = socket.create_server(("127.0.0.1", 0))
    web = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="critical", lifespan="on"))
    thread = threading.Thread(target=web.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    finally:
        web.should_exit = True
        thread.join()
        sock.close()


class Said(logging.Handler):
    """Notices in the log what servers say, and when one has said `hanging`."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.hanging = asyncio.Event()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(getattr(record, "line", ""))
        if self.lines[-1] == "hanging":
            self.hanging.set()


@contextmanager
def listening() -> Iterator[Said]:
    """To what servers of this process say."""
    handler, log = Said(), logging.getLogger("pipeline.tools.mcp_child")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


if __name__ == "__main__":
    server.run()
