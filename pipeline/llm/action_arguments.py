"""Ask a small model for the arguments of the tool it has chosen, as JSON that fits the tool's schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.domain.json_schema import JsonSchema
from pipeline.llm.wire import schema_to_wire

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
    """The body of a chat completions request whose answer is a JSON object.

    `before` is the last message of the user and of the assistant, for words that refer to them.
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
        "response_format": schema_to_wire(JsonSchema(name="arguments", schema=schema)),
    }


def bounded(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """`schema` reduced to the keywords that every version of the server's grammar knows, with a limit on each
    text and list, because a small model may not end one."""
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
    """Whether some text among the arguments shares no word with `said`: the model has invented it. Values
    from a list of the tool are not checked."""
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
