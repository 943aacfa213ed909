"""The parts of an action: what each value of its payload is, by its key and its form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.shield.injection.findings import Kind, ScanPart

COMMAND_KEYS = frozenset(("command", "cmd", "commands", "script", "shell", "code", "args", "argv"))
PATH_KEYS = frozenset(
    (
        *("path", "paths", "file", "filename", "file_name", "files", "source", "destination", "dest", "dir"),
        *("directory", "folder", "target", "from_path", "to_path", "pattern"),
    )
)
URL_KEYS = frozenset(("url", "urls", "uri", "link", "href", "endpoint", "address", "webhook"))
MOST_PARTS = 200
"""Further values are examined together, as one part."""
_URL = re.compile(r"\s?[a-zA-Z][a-zA-Z0-9+.-]{1,20}://|\s?(?:javascript|data|vbscript|file):", re.IGNORECASE)
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.~@%$-]{0,80}[/\\][^\s]{0,500}\Z")
_DEPTH = 12


def parts_of(action_type: str, payload: Mapping[str, Any]) -> tuple[ScanPart, ...]:
    """The type and each text in the payload, at any depth, placed by its keys; long keys are texts too.

    A value under a key of a command, path or URL is examined as such, and so is one that looks like it.
    """
    found = [ScanPart(kind="type", text=action_type, where="type")]
    rest: list[str] = []
    for where, key, text in _texts(payload, "", "", 0):
        if len(found) >= MOST_PARTS:
            rest.append(text)
            continue
        found += [ScanPart(kind=kind, text=text, where=where) for kind in _kinds(key, text)]
    if rest:
        found.append(ScanPart(kind="argument", text="\n".join(rest), where="further values"))
    return tuple(found)


def _kinds(key: str, text: str) -> Iterator[Kind]:
    yield "argument"
    if key in COMMAND_KEYS:
        yield "command"
    if _URL.match(text) or key in URL_KEYS:
        yield "url"
    elif key in PATH_KEYS or _PATH.match(text):
        yield "path"


def _texts(value: Any, where: str, key: str, depth: int) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, str):
        if value:
            yield where, key, value
    elif depth >= _DEPTH:
        # Deeper than any honest payload: examined as it is written.
        yield where, key, str(value)
    elif isinstance(value, Mapping):
        for raw_name, inner in value.items():
            name = str(raw_name)
            place = f"{where}.{name}" if where else name
            if len(name) > len("authorization"):
                yield f"key {place[:40]}", "", name
            yield from _texts(inner, place, name.lower(), depth + 1)
    elif isinstance(value, (list, tuple)):
        joined = key in COMMAND_KEYS and all(isinstance(one, str) for one in value)
        if joined:
            yield where, key, " ".join(value)
            return
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{where}[{number}]", key, depth + 1)
