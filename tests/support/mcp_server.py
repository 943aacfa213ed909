"""A real MCP server on the official SDK, with tools that fail as servers do.

`python -m tests.support.mcp_server` serves on its pipes, `over_http` in this process. Its imports take a
second: most servers that end with their test are a `plain_mcp_server`.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
def pid() -> str:
    """The process, and a child of it that would outlive it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
    return f"{os.getpid()} {child.pid}"


@server.tool()
def big(megabytes: int) -> str:
    """A result of many megabytes."""
    return "x" * (megabytes * 1_000_000)


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


if __name__ == "__main__":
    server.run()
