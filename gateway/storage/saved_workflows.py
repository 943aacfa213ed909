"""Port for the workflow documents that the page's editor has saved, and for the runs that it has begun: a
part of `Store`.

Every save is a new version; no version is changed. A document has no person: who may edit sees all of them.
Every method raises StorageError when the store fails.
"""

from __future__ import annotations

from typing import Protocol

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSummary:
    """One version of a document, without its text."""

    name: str
    version: int
    """From 1, each save one more."""
    runs: bool
    """Whether it had no mistakes when it was saved."""
    saved_at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun:
    """A run that was begun from the editor, in a separate conversation."""

    thread: str
    message_id: str
    name: str
    version: int
    at: float
    """Unix seconds."""


class SavedWorkflowBook(Protocol):
    """The saved documents by name, and their runs."""

    async def save(self, name: str, text: str, *, base: int, runs: bool, at: float) -> int | None:
        """Add a version of the document; its number. None if `base`, the version that was edited, is not the
        newest any more; 0 is for a document that is not there yet."""
        ...

    async def newest(self) -> tuple[SavedSummary, ...]:
        """The newest version of every document, by name."""
        ...

    async def versions(self, name: str) -> tuple[SavedSummary, ...]:
        """Every version of a document, newest first."""
        ...

    async def text(self, name: str, version: int) -> str | None:
        """The text of a version; None for an unknown one."""
        ...

    async def delete(self, name: str, *, base: int) -> bool:
        """Delete every version of a document and the list of its runs, if `base` is its newest version."""
        ...

    async def note_run(self, run: SavedRun) -> None:
        """Keep that a run begins. Repeatable: a conversation has one run."""
        ...

    async def run_in(self, thread: str) -> SavedRun | None:
        """The run that was begun in that conversation."""
        ...

    async def runs_of(self, name: str, *, threads: str, limit: int) -> tuple[SavedRun, ...]:
        """The newest runs of a document in conversations whose keys begin with `threads`, newest first."""
        ...
