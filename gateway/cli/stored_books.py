"""Open the books of the store that the settings name, for a command, also beside a running gateway.

The schema is not changed: only the gateway migrates.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gateway.app.store import database_url
from gateway.config import Settings
from gateway.runtime.data_dir import STORE_FILE
from gateway.storage.audit import AuditBook
from gateway.storage.crises import CrisisBook
from gateway.storage.erasure import PersonKeys
from gateway.storage.feedback import FeedbackBook
from gateway.storage.file_changes import FileChangeBook
from gateway.storage.identities import Identity
from gateway.storage.jobs import JobBook
from gateway.storage.page_people import PagePeopleBook
from gateway.storage.pairings import PairingBook
from gateway.storage.saved_workflows import SavedWorkflowBook
from gateway.storage.sqlite.audit import SqliteAudit
from gateway.storage.sqlite.crises import SqliteCrises
from gateway.storage.sqlite.feedback import SqliteFeedback
from gateway.storage.sqlite.file_changes import SqliteFileChanges
from gateway.storage.sqlite.group_commit import GroupCommit
from gateway.storage.sqlite.jobs import SqliteJobs
from gateway.storage.sqlite.memories import SqliteMemories
from gateway.storage.sqlite.offline import beside
from gateway.storage.sqlite.page_people import SqlitePagePeople
from gateway.storage.sqlite.pairings import SqlitePairings
from gateway.storage.sqlite.person_records import SqlitePersonRecords
from gateway.storage.sqlite.saved_workflows import SqliteSavedWorkflows
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.domain.errors import ConfigurationError
from pipeline.memory.ports import MemoryBook

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlace:
    """Where the store is."""

    folder: Path
    """The data folder, which has other files in either case."""
    url: str = ""
    """Of the Postgres database; empty where the store is a file of the folder."""


class PersonRecords(Protocol):
    """What the store has of a person, for an export. Every method raises StorageError."""

    async def keys_of(self, identity: Identity) -> PersonKeys:
        """See `ErasureBook.keys_of`."""
        ...

    async def counts(self, person: PersonKeys) -> dict[str, int]:
        """How many rows of each kind there are."""
        ...

    async def records(self, person: PersonKeys) -> dict[str, list[dict[str, Any]]]:
        """All rows, by kind."""
        ...

    async def private_threads(self, person: PersonKeys) -> tuple[str, ...]:
        """See `ErasureBook.private_threads`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBooks:
    """The books that commands use."""

    pairings: PairingBook
    people: PagePeopleBook
    workflows: SavedWorkflowBook
    jobs: JobBook
    feedback: FeedbackBook
    file_changes: FileChangeBook
    audit: AuditBook
    crises: CrisisBook
    memories: MemoryBook
    records: PersonRecords


def store_place(settings: Settings, what: str) -> StorePlace:
    """Where the store is. Raises ConfigurationError: `what`, in the plural, is in memory and cannot be seen
    from outside, or the URL of the database cannot be read."""
    if settings.storage.kind == "memory":
        raise ConfigurationError(f'storage.kind: {what} in memory cannot be seen from outside; use "sqlite"')
    url = database_url(settings) if settings.storage.kind == "postgres" else ""
    return StorePlace(folder=settings.data.dir, url=url)


@asynccontextmanager
async def stored_books(place: StorePlace) -> AsyncIterator[StoredBooks]:
    """The books. Raises StorageError if there is no such store."""
    if place.url:
        async with _in_postgres(place.url) as books:
            yield books
        return
    path = place.folder / STORE_FILE
    async with beside(path, lambda writer, reader: _in_file(path, writer, reader)) as books:
        yield books


async def in_store(place: StorePlace, ask: Callable[[StoredBooks], Awaitable[T]]) -> T:
    """What `ask` gets from the books. Raises StorageError."""
    async with stored_books(place) as books:
        return await ask(books)


def _in_file(
    path: Path, writer: Callable[[], DatabaseThread], reader: Callable[[], DatabaseThread]
) -> StoredBooks:
    return StoredBooks(
        pairings=SqlitePairings(writer, reader),
        people=SqlitePagePeople(writer, reader),
        workflows=SqliteSavedWorkflows(writer, reader),
        jobs=SqliteJobs(writer, reader),
        feedback=SqliteFeedback(writer, reader),
        file_changes=SqliteFileChanges(writer, reader),
        audit=SqliteAudit(writer, reader),
        crises=SqliteCrises(writer, reader),
        memories=SqliteMemories(writer, reader, GroupCommit(path, synchronous="FULL")),
        records=SqlitePersonRecords(writer, reader),
    )


@asynccontextmanager
async def _in_postgres(url: str) -> AsyncIterator[StoredBooks]:
    from gateway.storage.postgres.offline import opened_beside  # noqa: PLC0415 - its driver is an extra

    async with opened_beside(url) as opened:
        yield StoredBooks(
            pairings=opened.books.pairings,
            people=opened.books.page.people,
            workflows=opened.books.page.workflows,
            jobs=opened.jobs,
            feedback=opened.books.feedback,
            file_changes=opened.books.file_changes,
            audit=opened.books.shield.audit,
            crises=opened.books.crises,
            memories=opened.books.memories,
            records=opened.records,
        )
