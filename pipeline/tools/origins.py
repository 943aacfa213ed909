"""Record which of a person's files and notes were written by a turn that had read foreign text.

A turn could store a page's text in a note, and another conversation could read it: the note is as foreign as
the page. Accesses the disk: call it in a thread.
"""

from __future__ import annotations

import json
import posixpath
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.tools.confine import person_place, read_text, write_private
from pipeline.tools.folders import Place, reason
from pipeline.tools.tool import Refused, Tool, ToolFailed

SOURCES: Mapping[str, str] = {
    "files": "a file with text from elsewhere",
    "notes": "a note with text from elsewhere",
}
"""The readable name of the source, by the group whose tools read it."""
_REPLACING = frozenset({"write_file", "write_note", "delete_file", "delete_note"})
"""Tools that remove the whole old content of an item."""
_NAMES = ("path", "title")
_FILE = "foreign.json"
_MOST_BYTES = 1_000_000
_MOST_ITEMS = 1_000
_ANY = "*"
_LEAST_PARTS = 4
"""Of the path of an item: `people/<owner>/<group>/<name>`."""


class Origins:
    """The record for a workspace. One instance serves every turn."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()

    def source(self, tool: Tool, owner: str) -> str:
        """The source of what `tool` has read for `owner`; empty if none of the group's items is foreign."""
        if not tool.built_in or tool.group not in SOURCES:
            return ""
        with self._lock:
            items = self._read(owner)
        return SOURCES[tool.group] if items.get(tool.group) else ""

    def is_foreign(self, tool: Tool, arguments: Mapping[str, Any], owner: str) -> bool:
        """Whether the item that `tool` changes is foreign."""
        if not _keeps(tool):
            return False
        with self._lock:
            return not {_item(arguments), _ANY}.isdisjoint(self._read(owner).get(tool.group, ()))

    def note_restored(self, place: Place, content: bytes) -> None:
        """Note that a person's file or note gets back an earlier, foreign content. Raises ToolFailed where
        that cannot be stored."""
        self._mark(place, content, foreign=True)

    def note_gone(self, place: Place, content: bytes) -> None:
        """Note that a person's file or note with this content is not there any more. Raises ToolFailed where
        that cannot be stored."""
        self._mark(place, content, foreign=False)

    def before(self, tool: Tool, arguments: Mapping[str, Any], owner: str, *, foreign: bool) -> None:
        """Note that `tool` is about to change an item. Raises ToolFailed where that cannot be stored."""
        if foreign and _keeps(tool) and not tool.name.startswith("delete_"):
            self._change(self._path(owner), tool.group, _item(arguments), foreign=True)

    def after(self, tool: Tool, arguments: Mapping[str, Any], owner: str, *, foreign: bool) -> None:
        """Note that `tool` has changed an item. Raises ToolFailed where that cannot be stored."""
        deletes = tool.name.startswith("delete_")
        if _keeps(tool) and tool.name in _REPLACING and (deletes or not foreign):
            self._change(self._path(owner), tool.group, _item(arguments), foreign=False)

    def carry_over(self, source: str, target: str) -> None:
        """Add the marks of the owner `source` to those of `target`. Call before items are copied from one to
        the other. Raises ToolFailed where that cannot be stored."""
        with self._lock:
            known, more = self._read(target), self._read(source)
            joined = {group: known.get(group, set()) | more.get(group, set()) for group in {*known, *more}}
            if joined != known:
                self._write(target, joined)

    def _mark(self, place: Place, content: bytes, *, foreign: bool) -> None:
        if (group := _group_of(place)) is not None:
            record = Place(place.anchor, (*place.parts[:2], _FILE))
            self._change(record, group, _item_at(place, content), foreign=foreign)

    def _change(self, record: Place, group: str, item: str, *, foreign: bool) -> None:
        with self._lock:
            items = _read(record)
            known = items.get(group, set())
            changed = known | {item} if foreign else known - {item}
            if changed != known:
                _write(record, {**items, group: changed})

    def _write(self, owner: str, items: Mapping[str, set[str]]) -> None:
        _write(self._path(owner), items)

    def _read(self, owner: str) -> dict[str, set[str]]:
        return _read(self._path(owner))

    def _path(self, owner: str) -> Place:
        return person_place(self._root, owner) / _FILE


def _write(path: Place, items: Mapping[str, set[str]]) -> None:
    kept = {group: names if len(names) <= _MOST_ITEMS else {_ANY} for group, names in items.items()}
    plain = {group: sorted(names) for group, names in kept.items() if names}
    if plain:
        write_private(path, json.dumps(plain, ensure_ascii=False))
        return
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ToolFailed(f"it cannot be removed ({reason(error)})") from None


def _read(path: Place) -> dict[str, set[str]]:
    """The foreign items by group; all items if the record cannot be read."""
    try:
        if not path.exists():
            return {}
        plain = json.loads(read_text(path, most_bytes=_MOST_BYTES))
        return {str(group): {str(item) for item in items} for group, items in plain.items()}
    except (ToolFailed, Refused, ValueError, AttributeError, TypeError):
        return {group: {_ANY} for group in SOURCES}


def _group_of(place: Place) -> str | None:
    """The group of a person's file or note; None if the place is neither."""
    parts = place.parts
    ours = len(parts) >= _LEAST_PARTS and parts[0] == "people" and parts[2] in SOURCES
    return parts[2] if ours else None


def _item_at(place: Place, content: bytes) -> str:
    """The key of the file or note at a place."""
    name = "/".join(place.parts[_LEAST_PARTS - 1 :])
    if place.parts[2] == "notes":
        # The title is the first line; the name of the file shows only a part of it.
        name = content.decode("utf-8", "replace").partition("\n")[0]
    return _item({"path": name})


def _keeps(tool: Tool) -> bool:
    return tool.built_in and not tool.reads_only and tool.group in SOURCES


def _item(arguments: Mapping[str, Any]) -> str:
    """The key of an item: the same for all spellings of a path or a title."""
    name = next((str(arguments[key]) for key in _NAMES if key in arguments), _ANY)
    path = posixpath.normpath(name.replace("\\", "/")).casefold().removeprefix("own/")
    return " ".join(path.split())
