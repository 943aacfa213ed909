"""The one door to the MCP SDK: a connection to a server, as tools and calls in our own words.

When a server is started, stopped and started anew is `mcp_server`'s. The SDK (55 MB, half a second) is
imported with the first connection.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from pipeline.redaction.redactor import Redactor
from pipeline.tools.mcp_child import McpChild
from pipeline.tools.mcp_config import McpServerConfig, Resolve

MAX_TOOLS = 100
_QUICK_BYTES = 1 << 18
"""Longer messages are read in a thread: nobody else's turn waits for them."""
_PAGES = 20
_CONNECT_S = 30.0
"""Of one HTTP connection; how long an answer may take is the caller's bound."""


class McpGone(Exception):
    """The connection is over; the text says how, as far as that is known."""


class McpRefused(Exception):
    """The server answers that it does not do this; the text is the server's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool as its server describes it: nothing of it is to be believed."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAnswer:
    """What came of a call."""

    text: str
    failed: bool
    """The tool says so itself."""


class McpConnection:
    """A connection that stands, until `over` is set."""

    def __init__(self, client: Any, over: asyncio.Event, last_words: Callable[[], str]) -> None:
        self._client = client
        self._last_words = last_words
        self.over = over
        """The server has ended the connection."""

    async def tools(self) -> tuple[ListedTool, ...]:
        """The server's tools, `MAX_TOOLS` at most. Raises McpGone or McpRefused."""
        found: list[ListedTool] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._asked(self._client.list_tools(cursor=cursor))
            found += [
                ListedTool(name=tool.name, description=tool.description or "", schema=tool.input_schema)
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if not cursor or len(found) >= MAX_TOOLS:
                break
        return tuple(found[:MAX_TOOLS])

    async def call(self, name: str, arguments: Mapping[str, Any]) -> McpAnswer:
        """Have a tool called. Raises McpGone or McpRefused."""
        result = await self._asked(self._client.call_tool(name, dict(arguments)))
        texts = [_words(block) for block in result.content]
        if not texts and result.structured_content is not None:
            texts = [json.dumps(result.structured_content, ensure_ascii=False)]
        return McpAnswer(text="\n".join(texts), failed=bool(result.is_error))

    async def _asked(self, request: Any) -> Any:
        sdk = importlib.import_module("mcp")
        try:
            return await request
        except sdk.MCPError as error:
            closed = error.code == sdk.types.CONNECTION_CLOSED
            if not closed and not self.over.is_set():
                raise McpRefused(str(error)) from None
            raise McpGone(self._how()) from None
        except Exception as error:
            # Whatever the SDK could not make sense of.
            words = self._last_words() or f"its answer is not understood ({type(error).__name__})"
            raise McpGone(words) from error

    def _how(self) -> str:
        words = self._last_words()
        return f"it ended: {words}" if words else "it ended"


@asynccontextmanager
async def connected(
    config: McpServerConfig, environ: Mapping[str, str], resolve: Resolve, redactor: Redactor
) -> AsyncIterator[McpConnection]:
    """Connect to a server, starting its program where it is one; on leaving, both are gone.

    Raises McpGone, ConfigurationError for a reference that resolves to nothing, OSError and ValueError for a
    program that cannot be started; each may be wrapped in an ExceptionGroup.
    To be entered and left by one task; the connection may be used by any. What the program says on
    stderr goes through `redactor`.
    """
    if config.command:
        env = config.environment(environ, resolve)
        async with _program(config, env) as child, asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(child.errors(redactor))
            over = asyncio.Event()
            async with _opened(_Pipes(child, over), lambda: child.last_words) as client:
                yield McpConnection(client, over, lambda: child.last_words)
            reading.cancel()
    else:
        async with _opened(_http(config, resolve), str) as client:
            yield McpConnection(client, asyncio.Event(), str)


@asynccontextmanager
async def _program(config: McpServerConfig, env: Mapping[str, str]) -> AsyncIterator[McpChild]:
    command = (config.command, *config.args)
    child = await McpChild.start(config.name, command, env=env, cwd=config.cwd or None)
    try:
        yield child
    finally:
        await child.stop()


@asynccontextmanager
async def _opened(
    transport: AbstractAsyncContextManager[Any], last_words: Callable[[], str]
) -> AsyncIterator[Any]:
    # Half a second of imports, once: not on the loop, where everybody would wait for it.
    sdk = await asyncio.to_thread(importlib.import_module, "mcp")
    try:
        # Without callbacks: a server may ask neither for our model nor for our files.
        async with sdk.Client(transport, cache=None) as client:
            yield client
    except Exception as error:
        # The SDK's own groups of tasks wrap what happened.
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise McpGone(last_words() or str(first) or type(first).__name__) from error


@asynccontextmanager
async def _http(config: McpServerConfig, resolve: Resolve) -> AsyncIterator[Any]:
    http = await asyncio.to_thread(importlib.import_module, "mcp.client.streamable_http")
    httpx2 = importlib.import_module("httpx2")
    headers = config.sent_headers(resolve)
    timeout = httpx2.Timeout(_CONNECT_S, read=None)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout) as requests,
        http.streamable_http_client(config.url, http_client=requests) as streams,
    ):
        yield streams


class _Pipes:
    """A transport of the SDK over a child's pipes; also its stream of messages, in both directions."""

    def __init__(self, child: McpChild, over: asyncio.Event) -> None:
        self._child = child
        self._over = over
        self._shapes: Any = None
        self._wrapped: Any = None

    async def __aenter__(self) -> Any:
        self._shapes = importlib.import_module("mcp.types")
        self._wrapped = importlib.import_module("mcp.shared.message").SessionMessage
        return _Incoming(self), self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def send(self, item: Any) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        await self._child.send(text.encode() + b"\n")

    async def aclose(self) -> None:
        """The child is ended by whoever started it."""

    async def receive(self) -> Any:
        """The next message, or what was wrong with it. Raises StopAsyncIteration at the end."""
        line = await self._child.line()
        if not line:
            await self._child.all_said()
            self._over.set()
            raise StopAsyncIteration
        read = partial(self._shapes.jsonrpc_message_adapter.validate_json, line, by_name=False)
        try:
            message = read() if len(line) < _QUICK_BYTES else await asyncio.to_thread(read)
            return self._wrapped(message)
        except ValueError as error:
            return error  # programs print; the SDK passes over what is no message


class _Incoming:
    def __init__(self, pipes: _Pipes) -> None:
        self._pipes = pipes

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await self._pipes.receive()

    async def receive(self) -> Any:
        return await self._pipes.receive()

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        """As `aclose`."""


def _words(block: Any) -> str:
    """A piece of a result as text; what is none is named."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource" and getattr(block.resource, "text", None) is not None:
        return str(block.resource.text)
    if block.type == "resource_link":
        return f"[{block.name}: {block.uri}]"
    mime = getattr(block, "mime_type", None) or "something"
    return f"[{mime}, which cannot be shown here]"
