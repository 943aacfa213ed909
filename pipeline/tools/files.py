"""The group `files`: the turn owner's own files, which tools may change, and read-only shared files.

Only the operator writes shared files: text of one person there would reach all other conversations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline.domain.chat import ToolDefinition
from pipeline.redaction.private_keys import without_key_lines
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.scope import TurnScope
from pipeline.shield.file_places import divided
from pipeline.tools.confine import inside, person_place, read_text, text_files, write_private
from pipeline.tools.folders import Place, reason
from pipeline.tools.registry import FixedGroup
from pipeline.tools.send_file import SentFiles
from pipeline.tools.tool import Refused, Tool, ToolFailed, ToolOutput, tool_schema

_OWN = "own"
_SHARED = "shared"
_MOST_READ = 1_000_000
_MOST_WRITTEN = 200_000
"""Characters of one file."""
_MOST_ADDED = 10_000
_MOST_SENT = 25_000_000
_MOST_FILES = 500
"""The most files of one owner, and the most that one search reads."""
_MOST_LISTED = 200
_MOST_HITS = 50
_HIT_CHARS = 160

_PATH = {"type": "string", "minLength": 1, "maxLength": 300, "description": "such as own/list.txt"}


def files_group(root: Path, redactor: Redactor | None = None, *, most_sent: int = _MOST_SENT) -> FixedGroup:
    """The group for a workspace: `root/files` is shared, `root/people/<owner>/files` the owner's own.
    `most_sent` is the largest file, in bytes, that `send_file` reads."""
    files = _Files(root, redactor or Redactor())
    sent = SentFiles(files.path, most_sent)
    text = {"type": "string", "maxLength": _MOST_WRITTEN, "description": "all that the file will hold"}
    line = {"type": "string", "minLength": 1, "maxLength": _MOST_ADDED, "description": "what is added"}
    return FixedGroup(
        name="files",
        description="list, read, search, write, delete and send files",
        fixed=(
            _tool(
                "list_files", "List the files. Paths begin with own/ or shared/.", tool_schema({}), files.list
            ),
            _tool(
                "read_file", "Read a text file.", tool_schema({"path": _PATH}, {"line": _LINE}), files.read
            ),
            _tool("search_files", "Find text in all files.", tool_schema({"text": _SOUGHT}), files.search),
            _tool(
                "write_file",
                "Write a text file below own/, in place of what it held.",
                tool_schema({"path": _PATH, "text": text}),
                files.write,
                changes=files.changed,
            ),
            _tool(
                "append_file",
                "Add a line at the end of a text file below own/; one that is not there is made.",
                tool_schema({"path": _PATH, "text": line}),
                files.append,
                changes=files.changed,
            ),
            sent.tool(_PATH),
            _tool(
                "delete_file",
                "Delete a file below own/.",
                tool_schema({"path": _PATH}),
                files.delete,
                changes=files.changed,
            ),
        ),
    )


_LINE = {"type": "integer", "minimum": 1, "description": "the line to begin with; 1 is the first"}
_SOUGHT = {"type": "string", "minLength": 1, "maxLength": 200}

Work = Callable[[Mapping[str, Any], TurnScope], str]
Changed = Callable[[Mapping[str, Any], TurnScope], tuple[Place, ...]]


def _tool(
    name: str, description: str, parameters: dict[str, Any], work: Work, *, changes: Changed | None = None
) -> Tool:
    async def run(arguments: Mapping[str, Any], scope: TurnScope) -> ToolOutput:
        return ToolOutput(text=await asyncio.to_thread(work, arguments, scope))

    definition = ToolDefinition(name=name, description=description, parameters=parameters)
    return Tool(
        definition=definition,
        group="files",
        run=run,
        reads_only=changes is None,
        answers=True,
        changes=changes,
    )


class _Files:
    """The tools' work, run in a thread, on the files of the turn's owner."""

    def __init__(self, root: Path, redactor: Redactor) -> None:
        self._root = root
        self._redactor = redactor

    def list(self, _arguments: Mapping[str, Any], scope: TurnScope) -> str:
        lines = [name for name, _path in self._all(scope, most=_MOST_LISTED)]
        return "\n".join(lines) or "There are no files."

    def read(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        given = arguments["path"]
        text = _about(given, lambda: read_text(self.path(given, scope.owner), most_bytes=_MOST_READ))
        first = int(arguments.get("line", 1))
        lines = without_key_lines(text) if first > 1 else text.splitlines()
        if first > 1 and first > len(lines):
            raise ToolFailed(f"{given}: it has only {len(lines)} lines")
        return "\n".join(lines[first - 1 :]) if first > 1 else text or f"{given} is empty."

    def search(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        sought = arguments["text"].casefold()
        hits: list[str] = []
        for name, path in self._all(scope, most=_MOST_FILES):
            for number, line in _lines(path):
                if sought in line.casefold():
                    scope.reading.note(name)
                    shown = self._redactor.excerpt(line.strip(), _HIT_CHARS).text
                    hits.append(f"{name}:{number}: {shown}")
                    if len(hits) == _MOST_HITS:
                        return "\n".join([*hits, "There may be more."])
        return "\n".join(hits) or f"No file has “{arguments['text']}” in it."

    def write(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        given, text, owner = arguments["path"], arguments["text"], scope.owner
        folder = self._folder(_OWN, owner)
        path = self.path(given, owner, writes=True)
        if not path.exists() and sum(1 for _ in text_files(folder, most=_MOST_FILES)) >= _MOST_FILES:
            raise ToolFailed(f"there are {_MOST_FILES} files already; delete some first")
        _about(given, lambda: write_private(path, text))
        return f"{given} is written: {len(text)} characters."

    def append(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        given = arguments["path"]
        path = self.path(given, scope.owner, writes=True)
        held = _about(given, lambda: read_text(path, most_bytes=_MOST_READ)) if path.exists() else ""
        line = arguments["text"].rstrip("\n")
        text = f"{held}{'' if not held or held.endswith(chr(10)) else chr(10)}{line}\n"
        if len(text) > _MOST_WRITTEN:
            raise ToolFailed(f"{given}: it would be longer than {_MOST_WRITTEN} characters")
        self.write({"path": given, "text": text}, scope)
        return f"Added to {given}: {self._redactor.line(line, _HIT_CHARS)}"

    def delete(self, arguments: Mapping[str, Any], scope: TurnScope) -> str:
        given = arguments["path"]
        path = self.path(given, scope.owner, writes=True)
        if not path.exists():
            raise ToolFailed(f"{given}: there is no such file")
        if not path.is_file():
            raise Refused(f"{given}: it is not an ordinary file")
        try:
            path.unlink()
        except OSError as error:
            raise ToolFailed(f"{given}: it cannot be deleted ({reason(error)})") from None
        return f"{given} is deleted."

    def changed(self, arguments: Mapping[str, Any], scope: TurnScope) -> tuple[Place, ...]:
        """See `Tool.changes`."""
        return (self.path(arguments["path"], scope.owner, writes=True),)

    def _folder(self, which: str, owner: str) -> Place:
        # The operator may have linked the shared folder to another one; other folders are not links.
        return Place(self._root / "files") if which == _SHARED else person_place(self._root, owner) / "files"

    def path(self, given: str, owner: str, *, writes: bool = False) -> Place:
        """The file of a path. A path without own/ or shared/ means an own file, or else a shared one."""
        which, rest = divided(given)
        parts = PurePosixPath(rest).parts
        if writes and any(part.startswith(".") and part != ".." for part in parts):
            # Hidden files are neither listed nor counted, so their number would have no limit.
            raise Refused(f"{given}: names that begin with a dot cannot be used")
        if not which:
            own = inside(self._folder(_OWN, owner), given)
            return own if writes or own.exists() else inside(self._folder(_SHARED, owner), given)
        if writes and which == _SHARED:
            raise Refused(f"{given}: shared files are the operator's; write below own/")
        return inside(self._folder(which, owner), rest)

    def _all(self, scope: TurnScope, *, most: int) -> Iterator[tuple[str, Place]]:
        """The files that may be read, with their paths."""
        for which in (_OWN, _SHARED):
            for name, path in text_files(self._folder(which, scope.owner), most=most):
                if scope.reading.takes(f"{which}/{name}"):
                    yield f"{which}/{name}", path


def _about(given: str, work: Callable[[], Any]) -> Any:
    """The result of `work`; its failures name the path."""
    try:
        return work()
    except ToolFailed as failure:
        raise type(failure)(f"{given}: {failure}") from None


def _lines(path: Place) -> Iterator[tuple[int, str]]:
    """A file's lines with their numbers; none if it is not text or too large."""
    try:
        text = read_text(path, most_bytes=_MOST_READ)
    except ToolFailed:
        return
    yield from enumerate(without_key_lines(text), 1)
