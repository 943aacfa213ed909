"""Port for what another process may have changed, read each second where several share a store. A part of
`SharedStore`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Protocol

from gateway.storage.heartbeats import HEARTBEAT_SETTINGS, WATCH

CopiedBook = Literal["identities", "people", "chats", "watches", "erasures"]
"""The books that processes keep copies of: linked identities, invited people of the page, names and deletions
of its conversations, what is watched with its settings, and the erasures of people that are in progress."""
COPIED: Final[tuple[CopiedBook, ...]] = (
    "identities",
    "people",
    "chats",
    "watches",
    "erasures",
)
WATCHED_KINDS: Final = (WATCH, HEARTBEAT_SETTINGS)


class ChangeBook(Protocol):
    """What has changed since one looked last."""

    async def revisions(self) -> Mapping[CopiedBook, int]:
        """A number for each book, which differs from an earlier one if the book has changed since. It changes
        in the transaction that changes the book, whichever process writes. What a check has seen is no change
        of the watches. Raises StorageError."""
        ...

    async def stopped(self, running: Mapping[int, float]) -> frozenset[int]:
        """Those of the unfinished entries `running` that are to be stopped: the entry is cancelled, or
        somebody began to speak over its answer. Each has the Unix time at which its turn began, since what
        was said before does not stop it. Raises StorageError."""
        ...
