"""Rewrite the forms of older workflow documents to the form of today.

It works on plain JSON data, changes nothing that it is given, and leaves what is not of an old form as it is:
`reading` finds mistakes. Rewriting twice gives the same as once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

CONNECTIONS: Final = ("connections", "edges")
SOURCE_HANDLE: Final = ("sourceHandle", "source_handle")


def normalised(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with `input` as `approval`, a single `condition` as `conditions`, and the handle `true` as
    `condition-0`; without the nodes of the old type `end`, and the connections that lead to them."""
    found = dict(document)
    ifs: set[str] = set()
    ends: set[str] = set()
    nodes = _listed(document.get("nodes"))
    if nodes is not None:
        kept = [_node(node) for node in nodes]
        ends = {_name(node, "id") for node in kept if _is(node, "end")} - {""}
        ifs = {_name(node, "id") for node in kept if _is(node, "if")} - {""}
        found["nodes"] = [node for node in kept if not _is(node, "end")]
    for name in CONNECTIONS:
        connections = _listed(document.get(name))
        if connections is not None:
            found[name] = _connections(connections, ifs, ends)
    return found


def _node(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    found = dict(node)
    if found.get("type") == "input":
        found["type"] = "approval"
    data = found.get("data")
    if found.get("type") == "if" and isinstance(data, Mapping) and "condition" in data:
        found["data"] = _with_conditions(data)
    return found


def _with_conditions(data: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in data.items() if key != "condition"}
    # Both forms are there where an editor has kept the old one: the new one is what people see.
    if "conditions" not in data:
        old = data["condition"]
        found["conditions"] = [{"operator": "contains", "value": old}] if old not in ("", None) else []
    return found


def _connections(given: Sequence[Any], ifs: set[str], ends: set[str]) -> list[Any]:
    kept: list[Any] = []
    for one in given:
        if not isinstance(one, Mapping):
            kept.append(one)
        elif _name(one, "target") not in ends and _name(one, "source") not in ends:
            new = _connection(one, ifs)
            if new == one or not _has_same_way(given, new):
                kept.append(new)
    return kept


def _connection(one: Mapping[str, Any], ifs: set[str]) -> dict[str, Any]:
    found = dict(one)
    if _name(found, "source") in ifs:
        for name in SOURCE_HANDLE:
            if found.get(name) == "true":
                found[name] = "condition-0"
    return found


def _has_same_way(given: Sequence[Any], new: Mapping[str, Any]) -> bool:
    """Whether the document has the new form of a connection beside the old one."""
    return any(isinstance(one, Mapping) and _way(one) == _way(new) for one in given)


def _way(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return (one.get("source"), one.get("target"), *(one.get(name) for name in SOURCE_HANDLE))


def _name(one: Mapping[str, Any], field: str) -> str:
    """A text of an object; empty for anything else."""
    value = one.get(field)
    return value if isinstance(value, str) else ""


def _is(node: Any, kind: str) -> bool:
    return isinstance(node, Mapping) and node.get("type") == kind


def _listed(value: Any) -> Sequence[Any] | None:
    return value if isinstance(value, list | tuple) else None
