"""The port to the gateway's workflow editor: saved documents, and runs that are begun from the page.

Documents, mistakes and runs are plain JSON data in the forms of docs/web-protocol.md: a page draws them, and
no adapter reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from adapters.guests import Visitor
from pipeline.domain.ids import ThreadKey

Plain = Mapping[str, Any]
"""Plain JSON data."""


class EditRefused(Exception):
    """A request that cannot be carried out: the problem's code, and a text for the person."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code


class WorkflowEditor(Protocol):
    """What people who may edit can do. Every method raises StorageError; those with a name raise
    EditRefused."""

    async def may_edit(self, visitor: Visitor) -> bool:
        """Whether the visitor may use the editor now; asked for each request."""
        ...

    async def documents(self) -> Sequence[Plain]:
        """Every saved document, with its newest version."""
        ...

    async def document(self, name: str, version: int | None) -> Plain:
        """A version of a document, by default the newest, with its mistakes and the list of all versions."""
        ...

    def check(self, document: Plain) -> Sequence[Plain]:
        """Every mistake of a document, each with its place."""
        ...

    async def save(self, name: str, document: Plain, base: int) -> Plain:
        """Save a document as a new version over the version `base`; the new version and the mistakes."""
        ...

    async def delete(self, name: str, base: int) -> None:
        """Delete a document with all its versions, if `base` is the newest."""
        ...

    async def begin(self, thread: ThreadKey, message_id: str, name: str, version: int) -> str:
        """Keep that the message begins a run of that version in its conversation; the `workflow` of the
        message."""
        ...

    async def runs(self, name: str, visitor: Visitor) -> Sequence[Plain]:
        """The newest runs of a document that the visitor has begun, newest first."""
        ...

    async def run(self, thread: ThreadKey, seen: int) -> Plain:
        """The run that was begun in the conversation: its document, record and open questions. Without the
        record if nothing was added since the client has `seen` that many records."""
        ...
