"""Assemble tool calls from the fragments of a stream. Their arguments are not parsed."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.chat import ToolCall

SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True, kw_only=True)
class _Fragments:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class CallAssembly:
    """The calls of one answer. Pass the fragments to `add` in the order of their arrival."""

    def __init__(self) -> None:
        self._calls: list[_Fragments] = []
        self._at_index: dict[int, _Fragments] = {}

    def add(self, *, index: object, call_id: object, name: object, arguments: object) -> None:
        """Add one fragment. Each part may be missing; values of a wrong type count as missing."""
        id_text = call_id if isinstance(call_id, str) else ""
        name_text = name if isinstance(name, str) else ""
        call = self._whose(index if isinstance(index, int) else None, id_text, name_text)
        call.id = call.id or id_text
        # Some providers split the name, some repeat it whole with every fragment.
        if name_text and name_text != call.name:
            call.name += name_text
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            call.arguments.append(json.dumps(arguments))

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far, in the order in which they began. Missing and repeated ids get new values."""
        seen: set[str] = set()
        found: list[ToolCall] = []
        for fragments in self._calls:
            call_id = whole(fragments.id)
            if not call_id or call_id in seen:
                call_id = f"call_{secrets.token_hex(12)}"
            seen.add(call_id)
            name = whole(fragments.name) or "unnamed"
            found.append(ToolCall(id=call_id, name=name, arguments=whole("".join(fragments.arguments))))
        return tuple(found)

    def _whose(self, index: int | None, call_id: str, name: str) -> _Fragments:
        """The call that a fragment belongs to; a new one if the fragment opens a call.

        Some providers leave the index out, and some give all calls the same: then an id that is new,
        together with a name, opens a call.
        """
        latest = self._calls[-1] if self._calls else None
        current = latest if index is None else self._at_index.get(index)
        if current is not None and not _opens(current, index, call_id, name):
            return current
        fresh = _Fragments()
        self._calls.append(fresh)
        if index is not None:
            self._at_index[index] = fresh
        return fresh


def whole(text: str) -> str:
    """`text` without halves of surrogate pairs, which no encoder accepts. Two halves in a row are joined:
    some endpoints cut a character between two events."""
    if text.isascii() or not SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _opens(current: _Fragments, index: int | None, call_id: str, name: str) -> bool:
    """Whether a fragment that comes after `current` is the beginning of another call."""
    if not name:
        return False
    if call_id and current.id:
        return call_id != current.id
    return index is None and bool(current.arguments)


def fragments_of(calls: Any) -> list[dict[str, Any]]:
    """The arguments of `CallAssembly.add` for the `tool_calls` of one delta or message, as JSON data."""
    found = []
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            said = call.get("function")
            function = said if isinstance(said, dict) else {}
            found.append(
                {
                    "index": call.get("index"),
                    "call_id": call.get("id"),
                    "name": function.get("name"),
                    "arguments": function.get("arguments"),
                }
            )
    return found
