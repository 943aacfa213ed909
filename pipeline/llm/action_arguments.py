"""The arguments of a tool that a small model has chosen: asked for as JSON that fits the tool's schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.domain.chat import ToolDefinition

_INSTRUCTION = "Take the arguments of {name} from the user's words, as JSON."
_BEFORE = "\nBefore, the user said: {said}\nThe answer was: {answered}"
_MAX_TEXT = 400
_MAX_ITEMS = 10
_MAX_DEPTH = 4
_MAX_TOKENS = 300
_SHOWN_CHARS = 1_000
_BEFORE_CHARS = 300
_WORD = re.compile(r"\w+")
_SCALARS = ("number", "integer", "boolean", "null")


def arguments_body(tool: ToolDefinition, words: str, before: tuple[str, str] | None = None) -> dict[str, Any]:
    """The request's body, in the words of chat completions; the answer is a JSON object.

    `before` is what the user and the assistant said last, for words that mean it.
    """
    system = f"{_INSTRUCTION.format(name=tool.name)} {tool.description}\n{_described(tool.parameters)}"
    if before is not None:
        said, answered = (text[:_BEFORE_CHARS] for text in before)
        system += _BEFORE.format(said=said, answered=answered)
    messages = [{"role": "system", "content": system}]
    messages.append({"role": "user", "content": words[:_SHOWN_CHARS]})
    schema = bounded(tool.parameters)
    return {
        "messages": messages,
        "temperature": 0.0,
        "max_tokens": _MAX_TOKENS,
        "response_format": {"type": "json_schema", "json_schema": {"name": "arguments", "schema": schema}},
    }


def bounded(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """`schema` in the few words that every version of the server's grammar knows, every text and list
    with an end: a small model does not always find one by itself."""
    if "enum" in schema:
        return {"enum": list(schema["enum"])}
    kind = schema.get("type")
    if kind == "object" and depth < _MAX_DEPTH:
        properties = schema.get("properties", {})
        return {
            "type": "object",
            "properties": {name: bounded(one, depth + 1) for name, one in properties.items()},
            "required": [name for name in schema.get("required", ()) if name in properties],
            "additionalProperties": False,
        }
    if kind == "array" and depth < _MAX_DEPTH:
        return {"type": "array", "items": bounded(schema.get("items", {}), depth + 1), "maxItems": _MAX_ITEMS}
    if kind in _SCALARS:
        return {"type": kind}
    return {
        "type": "string",
        "minLength": min(1, schema.get("minLength", 0)),
        "maxLength": min(_MAX_TEXT, schema.get("maxLength", _MAX_TEXT)),
    }


def _described(parameters: Mapping[str, Any]) -> str:
    required = parameters.get("required", ())
    lines = []
    for name, schema in parameters.get("properties", {}).items():
        words = schema.get("description", "")
        lines.append(f"{name}{'' if name in required else ' (may be left out)'}: {words}".rstrip(": "))
    return "\n".join(lines)


def borrowed(tool: ToolDefinition, arguments: Mapping[str, Any], said: Iterable[str]) -> bool:
    """Whether some text among the arguments shares no word with what was `said`: the model made it up. A
    value out of a list is the tool's own word."""
    known = {word for text in said for word in _words(text)}
    schemas = tool.parameters.get("properties", {})
    for name, value in arguments.items():
        if "enum" in schemas.get(name, {}) or "enum" in schemas.get(name, {}).get("items", {}):
            continue
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and (found := _words(text)) and not found & known:
                return True
    return False


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
