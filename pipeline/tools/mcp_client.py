"""Connect to an MCP server, list its tools and call them. Only this module imports the MCP SDK.

`mcp_server` decides when a server is started, stopped and restarted. The SDK (55 MB, half a second) is
imported with the first connection.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self

from pipeline.domain.frozen import dataclass
from pipeline.domain.visible import visible_text
from pipeline.redaction.redactor import Redactor
from pipeline.tools.mcp_child import McpChild
from pipeline.tools.mcp_config import McpServerConfig, Resolve
from pipeline.tools.mcp_contents import read_block
from pipeline.tools.tool import ToolFile

_log = logging.getLogger(__name__)

_NAME_CHARS = 64
_CLOSED = "Connection closed"
MAX_TOOLS = 100
_QUICK_BYTES = 1 << 18
"""Longer messages are parsed in a thread, so that other turns do not wait for them."""
_PAGES = 20
_TOO_MANY = f"only {MAX_TOOLS} tools of a server are taken"
_DIRECTIONS = re.compile("[\u200e\u200f\u061c]")
_SIFTED = "parlour/unusable"
"""The key in `_meta` for tools that were removed from a list: pairs of a name and a fault."""
_CONNECT_S = 30.0
"""For one HTTP connection; the caller limits the time of an answer."""


class McpGone(Exception):
    """The connection has ended; the text gives the reason, as far as it is known."""


class McpRefused(Exception):
    """The server refuses the request; the text is the server's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool as its server describes it; all of this is untrusted."""

    name: str
    description: str
    schema: Mapping[str, Any]
    fault: str = ""
    """Why it cannot be used, in this program's words; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAnswer:
    """The result of a call."""

    text: str
    failed: bool
    """Whether the tool itself reports a failure."""
    files: tuple[ToolFile, ...] = ()
    """Pictures, sounds and other binary contents."""


class McpConnection:
    """An open connection, until `over` is set."""

    def __init__(self, client: Any, over: asyncio.Event, last_words: Callable[[], str]) -> None:
        self._client = client
        self._last_words = last_words
        self.over = over
        """Set when the server has ended the connection."""

    async def tools(self) -> tuple[ListedTool, ...]:
        """The server's tools: at most `MAX_TOOLS` usable ones, and the unusable ones with their fault.
        Raises McpGone or McpRefused."""
        found: list[ListedTool] = []
        unusable: list[ListedTool] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._asked(self._client.list_tools(cursor=cursor))
            found += [
                ListedTool(name=tool.name, description=tool.description or "", schema=tool.input_schema)
                for tool in page.tools
            ]
            unusable += [
                ListedTool(name=name, description="", schema={}, fault=fault)
                for name, fault in (page.meta or {}).get(_SIFTED, ())
            ]
            cursor = page.next_cursor
            if not cursor or len(found) >= MAX_TOOLS:
                break
        unusable += [replace(tool, fault=_TOO_MANY) for tool in found[MAX_TOOLS:]]
        return (*found[:MAX_TOOLS], *unusable)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> McpAnswer:
        """Call a tool. Raises McpGone or McpRefused."""
        result = await self._asked(self._client.call_tool(name, dict(arguments)))
        contents = [read_block(block) for block in result.content]
        texts = [text for text, _ in contents if text]
        if not contents and result.structured_content is not None:
            texts = [json.dumps(result.structured_content, ensure_ascii=False)]
        files = tuple(file for _, file in contents if file is not None)
        return McpAnswer(text="\n".join(texts), failed=bool(result.is_error), files=files)

    async def _asked(self, request: Any) -> Any:
        sdk = importlib.import_module("mcp")
        try:
            return await request
        except sdk.MCPError as error:
            # Servers use this code for their own errors too; the SDK's error has this text.
            closed = error.code == sdk.types.CONNECTION_CLOSED and str(error) == _CLOSED
            if not closed and not self.over.is_set():
                raise McpRefused(str(error)) from None
            raise McpGone(self._how()) from None
        except Exception as error:
            # Any answer that the SDK could not parse.
            words = self._last_words() or f"its answer is not understood ({type(error).__name__})"
            raise McpGone(words) from error

    def _how(self) -> str:
        words = self._last_words()
        return f"it ended: {words}" if words else "it ended"


@asynccontextmanager
async def connected(
    config: McpServerConfig, environ: Mapping[str, str], resolve: Resolve, redactor: Redactor
) -> AsyncIterator[McpConnection]:
    """Connect to a server, and start it if it is a program. On exit, both have ended.

    Raises McpGone, ConfigurationError for a reference that cannot be resolved, OSError and ValueError for a
    program that cannot be started; each may be wrapped in an ExceptionGroup.
    One task has to enter and exit it; any task may use the connection. The program's stderr is logged
    through `redactor`.
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
    # Half a second of imports, once: in a thread, so that the event loop is not blocked.
    sdk = await asyncio.to_thread(importlib.import_module, "mcp")
    try:
        # Without callbacks: a server may use neither our model nor our files.
        async with sdk.Client(transport, cache=None) as client:
            yield client
    except Exception as error:
        # The SDK's task groups wrap the original error.
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
        read, write, *_ = streams
        yield _Incoming(_HttpMessages(read)), write


class _Pipes:
    """An SDK transport over a child's pipes, and its stream of messages in both directions."""

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
        """Do nothing: the code that started the child ends it."""

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
            return self._wrapped(_sifted(message, self._shapes))
        except ValueError as error:
            return error  # programs may print; the SDK ignores lines that are no message


class _HttpMessages:
    """The messages of an HTTP server."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._shapes = importlib.import_module("mcp.types")

    async def receive(self) -> Any:
        """The next message, or what was wrong with it. Raises StopAsyncIteration at the end."""
        item = await anext(self._stream)
        if not isinstance(item, Exception):
            _sifted(item.message, self._shapes)
        return item

    async def aclose(self) -> None:
        """Close the underlying stream."""
        await self._stream.aclose()


class _Incoming:
    """The SDK's stream of incoming messages, over pipes or over HTTP."""

    def __init__(self, pipes: _Pipes | _HttpMessages) -> None:
        self._pipes = pipes

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await self._pipes.receive()

    async def receive(self) -> Any:
        return await self._pipes.receive()

    async def aclose(self) -> None:
        """Close the source of the messages."""
        await self._pipes.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def _sifted(message: Any, shapes: Any) -> Any:
    """The message; a list of tools without the ones for which the SDK would refuse the whole list, which are
    named in its `_meta`. `shapes` is the SDK's module of types."""
    result = getattr(message, "result", None)
    if not isinstance(result, dict) or not isinstance(listed := result.get("tools"), list):
        return message
    faults = [_fault(tool, shapes) for tool in listed]
    result["tools"] = [tool for tool, fault in zip(listed, faults, strict=True) if not fault]
    meta = result.get("_meta")
    result["_meta"] = {
        **(meta if isinstance(meta, dict) else {}),
        _SIFTED: [(_name_of(tool), fault) for tool, fault in zip(listed, faults, strict=True) if fault],
    }
    return message


def _fault(plain: Any, shapes: Any) -> str:
    """Why the SDK would refuse a tool; empty where it accepts it."""
    try:
        shapes.Tool.model_validate(plain, by_name=False)
    except ValueError as error:
        fault = f"its {_first_place(error)} is not what the protocol asks for"
        extra = {"tool": _name_of(plain)[:_NAME_CHARS], "reason": fault}
        _log.warning("a tool of an MCP server is left out", extra=extra)
        return fault
    return ""


def _name_of(plain: Any) -> str:
    name = plain.get("name") if isinstance(plain, dict) else None
    return name if isinstance(name, str) else ""


def _first_place(error: Any) -> str:
    """The first field of the protocol in pydantic's error."""
    place = next((problem["loc"] for problem in error.errors() if problem["loc"]), ("description",))
    return str(place[0])


def clean_words(text: str) -> str:
    """A server's text without invisible characters. Direction marks are removed too: one inside a secret
    would hide it from the redactor."""
    return _DIRECTIONS.sub("", visible_text(text))
