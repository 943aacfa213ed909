"""Port for the changes that tools have made to files. A part of `Store`.

The contents of the files are stored elsewhere, under the SHA-256 that is recorded here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """A file at one time."""

    content: str = ""
    """The SHA-256 of its content in hexadecimal; empty if there was no file."""
    mode: int = 0
    """Its permission bits."""


NO_FILE: Final = FileState()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChange:
    """A change that is about to be made to one file."""

    action: str
    """The id of the action that changes it. One action may change several files."""
    tool: str
    """The tool's name; empty for a change that no tool made."""
    root: str
    """The folder that `path` is relative to: an absolute path."""
    path: str
    thread: str
    message_id: str
    author: str
    """The user id of the turn's author."""
    owner: str
    """The owner of the turn; see `TurnScope.owner`."""
    foreign: bool = False
    """Whether the file held, or was given, text that neither its owner nor the operator wrote."""
    before: FileState
    after: FileState | None = None
    """Known already for a change that no tool made."""
    at: float
    """As Unix time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange(NewChange):
    """A recorded change. `after` is None until it is known, which a crash can delay."""

    id: int
    undone_by: str = ""
    """What takes it back, such as a message's id; empty until that is begun."""
    undone_at: float = 0.0
    """When it was taken back, as Unix time; 0 if it was not."""


class FileChangeBook(Protocol):
    """The changes, in the order of their ids. Every method raises StorageError when the store fails."""

    async def begin(
        self, changes: Sequence[NewChange], folders: Sequence[tuple[str, str]] = ()
    ) -> tuple[int, ...]:
        """Record the changes, all or none; their ids. `folders` are the folders of the files that are not
        there yet, each as its root and its path."""
        ...

    async def settle(self, after: Mapping[int, FileState | None]) -> None:
        """Record what the changes have led to. A change with None is removed: it changed nothing."""
        ...

    async def mark_undoing(self, ids: Sequence[int], by: str) -> None:
        """Record that changes are about to be taken back, and by what."""
        ...

    async def undone_by(self, by: str) -> FileChange | None:
        """The oldest change that was taken back, or is about to be, by this."""
        ...

    async def mark_undone(self, ids: Sequence[int], at: float) -> None:
        """Record that changes were taken back."""
        ...

    async def of_path(self, root: str, path: str) -> tuple[FileChange, ...]:
        """All changes of one file, oldest first."""
        ...

    async def is_spare(self, root: str, folder: str, without: Collection[int]) -> bool:
        """Whether a change has made the folder, and every recorded change of a file below it was taken back
        or has one of the ids `without`."""
        ...

    async def forget_folders(self, root: str, folders: Sequence[str]) -> None:
        """Record that folders that changes have made are gone."""
        ...

    async def of_action(self, action: str) -> tuple[FileChange, ...]:
        """The changes that one action made, oldest first."""
        ...

    async def find(self, change_id: int) -> FileChange | None:
        """The change with the id."""
        ...

    async def newest_of_thread(self, thread: str) -> FileChange | None:
        """The newest change by a tool in the thread that was not taken back."""
        ...

    async def named(self, name: str, *, limit: int) -> tuple[FileChange, ...]:
        """The newest `limit` changes of files whose path is `name` or ends with `/name`, newest first; of all
        files if `name` is empty."""
        ...

    async def of_thread(self, thread: str) -> tuple[FileChange, ...]:
        """All changes by tools in one thread, oldest first."""
        ...

    async def detach(self, removed: Collection[int], links: Mapping[int, FileState]) -> None:
        """Remove changes, and make others into changes by no tool, each with the state before it."""
        ...

    async def prune(self, *, before: float, most: int) -> int:
        """Remove the changes older than `before`, and those beyond the newest `most` of each file; how many
        were removed."""
        ...

    async def forget(self, owner: str) -> int:
        """Remove all changes of the files that `owner` has changed; how many. Their contents are then removed
        by the daily clean-up."""
        ...

    async def contents(self) -> frozenset[str]:
        """The SHA-256 of every content that is recorded."""
        ...
