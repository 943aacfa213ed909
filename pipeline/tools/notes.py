"""The group `notes`: short texts that the turn's owner wants to keep. Tools reach only the owner's notes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.tools.confine import person_place, read_text, slug, text_files, write_private
from pipeline.tools.folders import Place, reason
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Tool, ToolFailed, ToolOutput, tool_schema

_NOTES = "notes"
_MOST_NOTES = 200
_MOST_BYTES = 50_000
_LISTED_CHARS = 80

_TITLE = {"type": "string", "minLength": 1, "maxLength": 100, "description": "a few words"}
_TEXT = {"type": "string", "minLength": 1, "maxLength": 8_000}


def notes_group(root: Path, redactor: Redactor | None = None) -> FixedGroup:
    """The group for a workspace: notes are files in `root/people/<owner>/notes`."""
    notes = _Notes(root, redactor or Redactor())
    return FixedGroup(
        name=_NOTES,
        description="keep, read, search and delete the user's notes",
        fixed=(
            _tool(
                "write_note",
                "Keep a note for the user, in place of one with the same title.",
                tool_schema({"title": _TITLE, "text": _TEXT}),
                notes.write,
                changes=notes.changed,
                own=True,
            ),
            _tool(
                "read_notes",
                "Read one note by its title, or list all notes when no title is given.",
                tool_schema({}, {"title": _TITLE}),
                notes.read,
            ),
            _tool("search_notes", "Find text in the notes.", tool_schema({"text": _TITLE}), notes.search),
            _tool(
                "delete_note",
                "Delete a note by its title.",
                tool_schema({"title": _TITLE}),
                notes.delete,
                changes=notes.changed,
            ),
        ),
    )


Work = Callable[[Mapping[str, Any], TurnScope], str]
Changed = Callable[[Mapping[str, Any], TurnScope], tuple[Place, ...]]


def _tool(
    name: str,
    description: str,
    parameters: dict[str, Any],
    work: Work,
    *,
    changes: Changed | None = None,
    own: bool = False,
) -> Tool:
    async def run(arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        return ToolOutput(text=await asyncio.to_thread(work, arguments, scope))

    definition = ToolDefinition(name=name, description=description, parameters=parameters)
    return Tool(
        definition=definition,
        group=_NOTES,
        run=run,
        reads_only=changes is None,
        own_only=own,
        answers=True,
        changes=changes,
    )


class _Notes:
    """The tools' work, run in a thread, on the notes of the turn's owner. A note is a file: its title in the
    first line, then its text."""

    def __init__(self, root: Path, redactor: Redactor) -> None:
        self._root = root
        self._redactor = redactor

    def write(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        title, owner = _one_line(arguments["title"]), scope.owner
        path = self._path(title, owner)
        if not path.exists() and sum(1 for _ in self._all(owner)) >= _MOST_NOTES:
            raise ToolFailed(f"there are {_MOST_NOTES} notes already; delete some first")
        write_private(path, f"{title}\n{arguments['text']}")
        text = " ".join(arguments["text"].split())
        more = "" if text == title else f": {self._redactor.line(text, _LISTED_CHARS)}"
        return f"The note “{title}” is kept{more or '.'}"

    def read(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        if "title" in arguments:
            return self._one(arguments["title"], scope)
        lines = []
        for title, text in self._open(scope):
            scope.reading.note(f"{_NOTES}/{title}")
            lines.append(f"{title}: {self._redactor.line(text, _LISTED_CHARS)}")
        return "\n".join(lines) or "There are no notes."

    def search(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        sought, found = arguments["text"].casefold(), []
        for title, text in self._open(scope):
            if sought in title.casefold() or sought in text.casefold():
                scope.reading.note(f"{_NOTES}/{title}")
                found.append(f"{title}: {text}")
        return "\n\n".join(found) or f"No note has “{arguments['text']}” in it."

    def delete(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        title, owner = _one_line(arguments["title"]), scope.owner
        try:
            self._path(title, owner).unlink()
        except FileNotFoundError:
            raise ToolFailed(self._unknown(title, scope)) from None
        except OSError as error:
            raise ToolFailed(f"the note cannot be deleted ({reason(error)})") from None
        return f"The note “{title}” is deleted."

    def changed(self, arguments: Mapping[str, Any], scope: TurnScope) -> tuple[Place, ...]:
        """See `Tool.changes`."""
        return (self._path(_one_line(arguments["title"]), scope.owner),)

    def _one(self, title: str, scope: TurnScope) -> str:
        path = self._path(_one_line(title), scope.owner)
        if not path.exists():
            raise ToolFailed(self._unknown(title, scope))
        return read_text(path, most_bytes=_MOST_BYTES).partition("\n")[2]

    def _unknown(self, title: str, scope: TurnScope) -> str:
        # A rule that closes a note closes its title too.
        titles = ", ".join(known for known, _text in self._open(scope))
        return f"there is no note “{title}”; there are: {titles or 'none'}"

    def _folder(self, owner: str) -> Place:
        return person_place(self._root, owner) / _NOTES

    def _path(self, title: str, owner: str) -> Place:
        return self._folder(owner) / f"{slug(title.casefold())}.txt"

    def _open(self, scope: TurnScope) -> Iterator[tuple[str, str]]:
        """Title and text of every note that may be read."""
        for title, text in self._all(scope.owner):
            if scope.reading.takes(f"{_NOTES}/{title}"):
                yield title, text

    def _all(self, owner: str) -> Iterator[tuple[str, str]]:
        """Every note's title and text."""
        for _name, path in text_files(self._folder(owner), most=_MOST_NOTES):
            try:
                title, _, text = read_text(path, most_bytes=_MOST_BYTES).partition("\n")
            except ToolFailed:
                continue
            yield title, text


def _one_line(text: str) -> str:
    return " ".join(text.split())
