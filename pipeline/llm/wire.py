"""Convert a request to the JSON of OpenAI's chat completions, which most providers accept."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.json_schema import JsonSchema

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64
_NONE: Mapping[str, bytes] = {}


def messages_to_wire(
    messages: Iterable[ChatMessage], pictures: Mapping[str, bytes] = _NONE
) -> list[dict[str, Any]]:
    """`messages` as JSON data, with their tool calls and results. `pictures` has the bytes of their pictures,
    by the ids of the files. The leading system messages are joined into one: the templates of many open
    models refuse a second one."""
    whole = tuple(messages)
    before = tuple(takewhile(lambda message: message.role == "system", whole))
    if len(before) > 1:
        text = "\n\n".join(message.content for message in before)
        whole = (ChatMessage(role="system", content=text), *whole[len(before) :])
    return [_message(message, pictures) for message in whole]


def tools_to_wire(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """`tools` as JSON data."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def schema_to_wire(schema: JsonSchema) -> dict[str, Any]:
    """The `response_format` that asks for an answer of that form."""
    # Not `strict`: OpenAI then refuses schemas with bounds, and the answer is checked anyway.
    return {"type": "json_schema", "json_schema": {"name": schema.name, "schema": dict(schema.schema)}}


def _message(message: ChatMessage, pictures: Mapping[str, bytes]) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.pictures:
        wire["content"] = _parts(message, pictures)
    if message.tool_calls:
        # Some providers refuse an empty text with calls; all accept null.
        wire["content"] = message.content or None
        wire["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _parts(message: ChatMessage, pictures: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The content of a message with pictures, each as a data URL: the only form that all providers accept."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.content}] if message.content else []
    for file in message.pictures:
        if file.id in pictures:
            url = f"data:{file.mime};base64,{base64.b64encode(pictures[file.id]).decode('ascii')}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def _call(call: ToolCall) -> dict[str, Any]:
    """A call in an earlier message. Providers refuse a whole conversation for one invalid name or JSON text,
    so both are corrected here; the tool's result says what was wrong."""
    name = _NOT_IN_NAMES.sub("_", call.name)[:_MAX_NAME_CHARS] or "unnamed"
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": name, "arguments": _object_text(call.arguments)},
    }


def _object_text(arguments: str) -> str:
    try:
        whole = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        whole = False
    if whole:
        return arguments
    return json.dumps({"unreadable": arguments}) if arguments.strip() else "{}"
