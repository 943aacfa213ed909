"""The port that fetches, reads and stores the attachments of a message, and the words that come from them."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

from pipeline.domain.files import StoredFile
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage, MediaRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What is known of a message's attachments once they are read."""

    files: tuple[StoredFile, ...] = ()
    """Those that can be used, in their order."""
    attached: str = ""
    """What the model reads of them: a note for each, and the first pages of documents between marks."""
    left_out: str = ""
    """A line for the person about those that cannot be used; empty if there are none."""
    unused: tuple[MediaRef, ...] = ()
    """The same, for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstored:
    """A file off the record: in memory until its turn ends."""

    file: StoredFile
    content: bytes = field(repr=False)


class Attachments(Protocol):
    """Fetches, reads and stores the attachments of messages, for hosts that can."""

    async def take(
        self, message: InboundMessage, *, max_tokens: int, unstored: dict[str, Unstored] | None
    ) -> Taken:
        """Fetch and read the attachments of `message`. `max_tokens` limits the text of documents.

        An attachment that cannot be fetched, read or stored is left out with its reason; this never fails for
        one. With `unstored`, for messages off the record, nothing is written: the files are put there by
        their ids.
        """
        ...

    async def content(self, thread: ThreadKey, file: StoredFile) -> bytes:
        """The bytes of a file of `thread`. Raises FileGone, StorageError."""
        ...
