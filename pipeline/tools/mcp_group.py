"""The tool groups `mcp:<server>`: servers' tools under names, and with descriptions, that are fit for models.

A server's words are untrusted, and its tools always ask: whatever it says of them, it runs elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.runtime.scope import TurnScope
from pipeline.tools.mcp_client import ListedTool, connected
from pipeline.tools.mcp_config import McpServerConfig, Resolve
from pipeline.tools.mcp_server import McpServer, Spawn
from pipeline.tools.tool import Tool, ToolOutput, described

MAX_DESCRIPTION_CHARS = 1_024
MAX_RESULT_CHARS = 4_800
"""With the words about the cut below what the gate lets through."""
MAX_SCHEMA_CHARS = 20_000
_MAX_NAME_CHARS = 64
_DEEPEST = 20
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_HASHED = re.compile(r".*_[0-9a-f]{8}")
_NOT_AT_THE_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
"""For one tool with these OpenAI refuses the whole request. The server checks its arguments itself."""
_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "properties": {}}


class McpGroup:
    """Implements ToolGroup for one server."""

    def __init__(self, server_name: str, server: McpServer) -> None:
        self.name = f"mcp:{server_name}"
        self.description = f"tools of the MCP server {server_name}"
        self._server_name = server_name
        self._server = server

    async def tools(self, _scope: TurnScope) -> tuple[Tool, ...]:
        """The server's tools, listed anew; starts it. Raises ToolFailed."""
        return tuple(self._tool(listed) for listed in await self._server.tools())

    async def close(self) -> None:
        """Stop the server."""
        await self._server.close()

    def _tool(self, listed: ListedTool) -> Tool:
        definition = ToolDefinition(
            name=tool_name(self._server_name, listed.name),
            description=_plain(listed.description)
            or f"The tool {_plain(listed.name)} of {self._server_name}.",
            parameters=schema_for_models(listed.schema),
        )
        return Tool(
            definition=definition,
            group=self.name,
            run=partial(self._run, listed.name),
            built_in=False,
            timeout_s=self._server.longest_s,
            describe=partial(self._describe, listed.name),
        )

    async def _run(self, tool: str, arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        answer = await self._server.call(tool, arguments)
        text = answer.text.strip() or "(The tool says nothing.)"
        if len(text) > MAX_RESULT_CHARS:
            text = f"{text[:MAX_RESULT_CHARS]}\n[Cut: the result has {len(text)} characters.]"
        return ToolOutput(text=_CONTROLS.sub("", text), success=not answer.failed)

    def _describe(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """By its whole name: a person sees whose tool it is."""
        return f"{self.name}:{_plain(tool)[:80]} {described(arguments)}".strip()


def mcp_groups(
    servers: Sequence[McpServerConfig],
    *,
    environ: Mapping[str, str],
    resolve: Resolve,
    clock: Clock,
    spawn: Spawn,
    idle_s: float,
    timeout_s: float,
) -> tuple[McpGroup, ...]:
    """A group for each server; none of them is started yet."""
    return tuple(
        McpGroup(
            config.name,
            McpServer(
                config.name,
                partial(connected, config, environ, resolve),
                clock=clock,
                spawn=spawn,
                idle_s=idle_s,
                timeout_s=timeout_s,
            ),
        )
        for config in servers
    )


def tool_name(server: str, tool: str) -> str:
    """`mcp__server__tool`, in letters, digits, `_` and `-`, at most 64 of them, and another for each tool.

    A name that had to be changed ends in a checksum of the original, and so does one that only looks so.
    """
    prefix = f"mcp__{server}__"
    plain = _UNSAFE.sub("_", tool)
    if plain == tool and tool and len(prefix + tool) <= _MAX_NAME_CHARS and not _HASHED.fullmatch(tool):
        return prefix + tool
    checksum = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{prefix}{plain[: _MAX_NAME_CHARS - len(prefix) - 9]}_{checksum}"


def _plain(text: str) -> str:
    """A server's words without what cannot be seen, at a bounded length."""
    text = _CONTROLS.sub("", text).strip()
    if len(text) <= MAX_DESCRIPTION_CHARS:
        return text
    return text[: MAX_DESCRIPTION_CHARS - 1] + "…"


def schema_for_models(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tool's parameters with bounded words, as providers take them; anything goes where the server's
    schema is unusable."""
    plain = _plain_schema(schema, 0)
    if not isinstance(plain, dict) or plain.get("type") != "object":
        return _ANY_OBJECT
    plain = {key: value for key, value in plain.items() if key not in _NOT_AT_THE_TOP}
    try:
        usable = len(json.dumps(plain, allow_nan=False)) <= MAX_SCHEMA_CHARS
    except (TypeError, ValueError):
        usable = False
    return {"properties": {}, **plain} if usable else _ANY_OBJECT


def _plain_schema(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return {}
    if isinstance(value, Mapping):
        plain = {_plain(str(key)): _plain_schema(inner, depth + 1) for key, inner in value.items()}
        # OpenAI refuses a list that does not say of what.
        return {**plain, "items": {}} if plain.get("type") == "array" and "items" not in plain else plain
    if isinstance(value, list | tuple):
        return [_plain_schema(inner, depth + 1) for inner in value]
    return _plain(value) if isinstance(value, str) else value
