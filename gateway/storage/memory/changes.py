"""What has changed, by the contents of the dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from gateway.storage.changes import WATCHED_KINDS, CopiedBook
from gateway.storage.erasure import FULL_ERASURE
from gateway.storage.heartbeats import HEARTBEAT_SETTINGS
from gateway.storage.memory.identities import MemoryIdentities
from gateway.storage.memory.jobs import MemoryJobs
from gateway.storage.memory.page_chats import MemoryPage
from gateway.storage.memory.rows import EntryRow


class _Books(Protocol):
    identities: MemoryIdentities
    page: MemoryPage
    jobs: MemoryJobs


class MemoryChanges:
    """A part of `MemoryStore`, which passes the books and its check that the store is open."""

    def __init__(
        self,
        require_open: Callable[[], None],
        entries: Mapping[int, EntryRow],
        books: _Books,
    ) -> None:
        self._require_open = require_open
        self._entries = entries
        self._books = books

    async def revisions(self) -> Mapping[CopiedBook, int]:
        self._require_open()
        watched = [job for kind in WATCHED_KINDS for job in await self._books.jobs.all_of(kind)]
        return {
            "identities": _number(await self._books.identities.linked()),
            "people": _number([one.id for one in await self._books.page.people.people()]),
            "chats": _number(await self._books.page.all_names(), await self._books.page.deleted()),
            "watches": _number(
                [(one.id, one.body if one.kind == HEARTBEAT_SETTINGS else "") for one in watched]
            ),
            "erasures": _number([one.id for one in await self._books.jobs.all_of(FULL_ERASURE)]),
        }

    async def stopped(self, running: Mapping[int, float]) -> frozenset[int]:
        self._require_open()
        found = [self._entries[seq] for seq in running if seq in self._entries]
        spoken = [row for row in self._entries.values() if row.kind == "barge_in" and row.outcome is None]
        return frozenset(
            row.seq
            for row in found
            if row.outcome is None
            and (
                row.cancelled
                or any(
                    one.thread == row.thread and one.seq > row.seq and one.received_at >= running[row.seq]
                    for one in spoken
                )
            )
        )


def _number(*contents: object) -> int:
    return hash(tuple(repr(one) for one in contents))
