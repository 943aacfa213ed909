"""The tool groups `mcp:<server>`: MCP servers' tools with names and descriptions that models accept.

A server's text is untrusted, and its tools always need approval, because they run elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pipeline.domain.background import Spawn
from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.mcp_client import ListedTool, clean_words, connected
from pipeline.tools.mcp_config import McpServerConfig, Resolve
from pipeline.tools.mcp_server import McpServer
from pipeline.tools.tool import Tool, ToolOutput, described

MAX_DESCRIPTION_CHARS = 1_024
MAX_RESULT_CHARS = 100_000
"""The most of a result that the gate gets; the rest is only counted. The gate shows far less."""
MAX_SCHEMA_CHARS = 20_000
_MAX_NAME_CHARS = 64
_DESCRIBED_CHARS = 80
_DEEPEST = 20
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_HASHED = re.compile(r".*_[0-9a-f]{8}")
_NOT_AT_THE_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
"""OpenAI refuses a whole request for one tool with these keywords. The server checks its arguments."""
_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "properties": {}}


class McpGroup:
    """Implements ToolGroup for one server."""

    def __init__(self, server_name: str, server: McpServer, redactor: Redactor | None = None) -> None:
        self.name = f"mcp:{server_name}"
        self.description = f"tools of the MCP server {server_name}"
        self._server_name = server_name
        self._server = server
        self._redactor = redactor or Redactor()
        self.unusable: tuple[str, ...] = ()
        """See PartialGroup."""

    async def tools(self, _scope: TurnScope) -> tuple[Tool, ...]:
        """The server's current tools; starts the server. Raises ToolFailed."""
        listed = await self._server.tools()
        self.unusable = tuple(
            f"{tool_name(self._server_name, tool.name, self._plain)} ({tool.fault})"
            for tool in listed
            if tool.fault
        )
        return tuple(self._tool(tool) for tool in listed if not tool.fault)

    async def close(self) -> None:
        """Stop the server."""
        await self._server.close()

    def _tool(self, listed: ListedTool) -> Tool:
        definition = ToolDefinition(
            name=tool_name(self._server_name, listed.name, self._plain),
            description=self._plain(listed.description)
            or f"The tool {self._plain(listed.name)} of {self._server_name}.",
            parameters=schema_for_models(listed.schema, self._plain),
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
        text = answer.text.strip() or ("" if answer.files else "(The tool says nothing.)")
        # Invisible characters are removed before secrets: one may be inside a secret.
        shown = clean_words(text[:MAX_RESULT_CHARS])
        left_out = max(0, len(text) - MAX_RESULT_CHARS)
        return ToolOutput(text=shown, success=not answer.failed, left_out=left_out, files=answer.files)

    def _describe(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The call with the tool's full name, so that a person sees whose tool it is."""
        name = self._redactor.line(clean_words(tool[:MAX_RESULT_CHARS]), _DESCRIBED_CHARS)
        return f"{self.name}:{name} {described(arguments)}".strip()

    def _plain(self, text: str) -> str:
        """A server's text without invisible characters and secrets, at a bounded length."""
        found = self._redactor.excerpt(clean_words(text).strip(), MAX_DESCRIPTION_CHARS)
        return found.text if found.whole else found.text[: MAX_DESCRIPTION_CHARS - 1] + "…"


def mcp_groups(
    servers: Sequence[McpServerConfig],
    *,
    environ: Mapping[str, str],
    resolve: Resolve,
    clock: Clock,
    spawn: Spawn,
    idle_s: float,
    timeout_s: float,
    redactor: Redactor | None = None,
) -> tuple[McpGroup, ...]:
    """A group for each server. No server is started yet."""
    redactor = redactor or Redactor()
    return tuple(
        McpGroup(
            config.name,
            McpServer(
                config.name,
                partial(connected, config, environ, resolve, redactor),
                clock=clock,
                spawn=spawn,
                idle_s=idle_s,
                timeout_s=timeout_s,
                redactor=redactor,
            ),
            redactor,
        )
        for config in servers
    )


def tool_name(server: str, tool: str, safe: Callable[[str], str] = str) -> str:
    """`mcp__server__tool`, at most 64 letters, digits, `_` and `-`, different for each tool.

    A name that had to be changed ends in a checksum of the original, and so does one that looks changed.
    `safe` removes secrets from it, and may cut it.
    """
    prefix = f"mcp__{server}__"
    plain = _UNSAFE.sub("_", safe(tool))
    if plain == tool and tool and len(prefix + tool) <= _MAX_NAME_CHARS and not _HASHED.fullmatch(tool):
        return prefix + tool
    checksum = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{prefix}{plain[: _MAX_NAME_CHARS - len(prefix) - 9]}_{checksum}"


def schema_for_models(schema: Mapping[str, Any], plain_words: Callable[[str], str]) -> Mapping[str, Any]:
    """The tool's parameters in a form that providers accept, each text passed through `plain_words`. Any
    object is allowed where the server's schema is unusable."""
    plain = _plain_schema(schema, plain_words, 0)
    if not isinstance(plain, dict) or plain.get("type") != "object":
        return _ANY_OBJECT
    plain = {key: value for key, value in plain.items() if key not in _NOT_AT_THE_TOP}
    try:
        usable = len(json.dumps(plain, allow_nan=False)) <= MAX_SCHEMA_CHARS
    except (TypeError, ValueError):
        usable = False
    return {"properties": {}, **plain} if usable else _ANY_OBJECT


def _plain_schema(value: Any, words: Callable[[str], str], depth: int) -> Any:
    if depth > _DEEPEST:
        return {}
    if isinstance(value, Mapping):
        plain = {words(str(key)): _plain_schema(inner, words, depth + 1) for key, inner in value.items()}
        # OpenAI refuses an array without `items`.
        return {**plain, "items": {}} if plain.get("type") == "array" and "items" not in plain else plain
    if isinstance(value, list | tuple):
        return [_plain_schema(inner, words, depth + 1) for inner in value]
    return words(value) if isinstance(value, str) else value
