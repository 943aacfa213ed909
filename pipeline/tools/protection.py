"""Protect names in the workspace, which no tool may use for any user. No file is read here.

The operator's texts control the bot's behaviour, and the data folder has the data of all people. Tools of
others use any names for path arguments, so every short string argument is checked.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.shield.globs import plain_path
from pipeline.tools.tool import Tool

READ_ONLY = frozenset({"soul.md", "identity.md", "agents.md", "heartbeat.md", "user.md", "memory.md"})
"""The bot's own texts, compared without case, because some file systems ignore case."""
HARD_BLOCKED = frozenset({"config.toml", "parlour.toml", "canary.token", "audit.jsonl", ".env", "mcp.json"})
"""Files that tools may not read either."""
_BLOCKED_SUFFIXES = (".sqlite3", ".sqlite3-wal", ".sqlite3-shm", ".pem", ".key")
_BLOCKED_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker", ".parlour", "security"})
_READ_ONLY_FOLDERS = frozenset({"skills"})
_PATH_KEYS = frozenset({"path", "source", "destination", "dir", "directory", "folder", "file", "target"})
LONGEST_PATH = 1_024


class Protection:
    """Checks the paths in a call's arguments. `blocked` are further folders that no tool may enter, such as
    the gateway's data folder; the workspace inside it is allowed."""

    def __init__(self, workspace: Path, *, blocked: tuple[Path, ...] = ()) -> None:
        self._root = Path(os.path.realpath(workspace))
        self._blocked = tuple(Path(os.path.realpath(folder)) for folder in blocked)

    def concerns(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether the call has anything to check. Does not access the disk."""
        return any(not tool.built_in or key in _PATH_KEYS for key, _value in strings("", arguments))

    def objection(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """The readable reason why the call is refused; empty where it is allowed. Accesses the disk: call it
        in a thread."""
        for key, value in strings("", arguments):
            if tool.built_in and key not in _PATH_KEYS:
                continue
            words = self._objection_to(value, writes=not tool.reads_only, named=key in _PATH_KEYS)
            if words:
                return words
        return ""

    def _objection_to(self, value: str, *, writes: bool, named: bool) -> str:
        if not value or len(value) > LONGEST_PATH or "\n" in value:
            return ""
        if "\0" in value:
            return "a path must not contain a NUL character"
        path = resolved(self._root, value)
        # Under a key that is not for paths, a text counts as a path only if a file exists there.
        if path is None or not (named or _may_exist(path)):
            return ""
        if self._is_blocked(path):
            return f"{path.name} is protected: it cannot be read or written"
        if writes and self._is_read_only(path):
            return f"{path.name} is protected: it is the operator's and cannot be changed"
        return ""

    def _is_blocked(self, path: Path) -> bool:
        name = path.name.casefold()
        if name in HARD_BLOCKED or name.endswith(_BLOCKED_SUFFIXES):
            return True
        if any(part.casefold() in _BLOCKED_FOLDERS for part in path.parts):
            return True
        if path == self._root or self._root in path.parents:
            return False
        return any(folder == path or folder in path.parents for folder in self._blocked)

    def _is_read_only(self, path: Path) -> bool:
        if self._root not in path.parents:
            return False
        parts = [part.casefold() for part in path.relative_to(self._root).parts]
        if parts[0] in _READ_ONLY_FOLDERS:
            return True
        # The operator's texts in the root, and each person's in their folder.
        return parts[-1] in READ_ONLY and (len(parts) == 1 or (len(parts) == 3 and parts[0] == "people"))


def _may_exist(path: Path) -> bool:
    """Whether something is at `path`, or that cannot be found out."""
    try:
        return path.exists()
    except OSError as error:
        # No file has such a name: a long line of text.
        return error.errno != errno.ENAMETOOLONG


def resolved(root: Path, value: str) -> Path | None:
    """The path that `value` names relative to `root`, with symlinks followed; for a missing file, below its
    resolved parent. None for a text that is no path. Accesses the disk."""
    if not value or len(value) > LONGEST_PATH or "\n" in value or "\0" in value:
        return None
    try:
        return Path(os.path.realpath(root / Path(plain_path(value)).expanduser()))
    except (OSError, ValueError, RuntimeError):
        return None


def strings(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every string in plain data, with the nearest key above it; so are the keys, each of which may name a
    file."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield key, str(name)
            yield from strings(str(name).casefold(), one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from strings(key, one)
