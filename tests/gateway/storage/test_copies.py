"""Copies of books in two processes on one store: how soon a change of one is seen by the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from gateway.people.directory import PersonDirectory
from gateway.runtime.tasks import Supervisor
from gateway.storage.changes import CopiedBook
from gateway.storage.copies import LOOK_S, BookCopies
from gateway.storage.identities import Identity, JoinRequest, LinkCode, TryLimits
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

ANN = Identity(channel="telegram", account="main", user="1")
BEN = Identity(channel="slack", account="main", user="2")
BENS = ThreadKey(channel="slack", account="main", chat="D1")


class FailingChanges:
    """A store whose revisions can be made unreadable; counts the reads."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.reads = 0
        self.fails = False

    async def revisions(self) -> Mapping[CopiedBook, int]:
        self.reads += 1
        if self.fails:
            raise StorageError("away")
        return await self._store.changes.revisions()

    async def stopped(self, seqs: object) -> frozenset[int]:
        raise NotImplementedError


class Process:
    """What one process knows of people."""

    def __init__(self, store: MemoryStore, clock: ManualClock) -> None:
        self.changes = FailingChanges(store)
        self.people = PersonDirectory(store.identities)
        self.copies = BookCopies(self.changes, clock)
        self.copies.keep("identities", self.people.load)

    @property
    def bens_person(self) -> str:
        return self.people.person_of(BENS, BEN.user)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def process(clock: ManualClock) -> tuple[Process, MemoryStore]:
    store = MemoryStore()
    await store.open()
    made = Process(store, clock)
    await made.copies.fresh()
    return made, store


async def link(store: MemoryStore) -> None:
    """As another process does it."""
    code = LinkCode(identity=ANN, thread="t", code_hash="h", issued_at=0.0, expires_at=60.0)
    await store.identities.issue(code, limit=9)
    request = JoinRequest(
        identity=BEN,
        thread="t",
        message_id="m",
        code_hash="h",
        new_person="person:1",
        most=9,
        at=1.0,
        day="2026-01-01",
    )
    await store.identities.join(request, TryLimits(window_s=60.0, identity=5, everybody=9))


@asynccontextmanager
async def running(copies: BookCopies) -> AsyncIterator[None]:
    tasks = Supervisor()
    tasks.spawn(copies.run(), name="copies")
    yield
    await tasks.close()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_another_process_links_is_seen_at_the_next_look(
    process: tuple[Process, MemoryStore], clock: ManualClock
) -> None:
    one, store = process
    async with running(one.copies):
        await settled()
        await link(store)
        await settled()
        assert one.bens_person == BEN.key
        await clock.advance(LOOK_S)
        await settled()
        assert one.bens_person == "person:1"


async def test_a_signal_makes_the_look_come_at_once(process: tuple[Process, MemoryStore]) -> None:
    one, store = process
    async with running(one.copies):
        await settled()
        await link(store)
        one.copies.note_changed("nothing that is copied")
        await settled()
        assert one.bens_person == BEN.key
        one.copies.note_changed("identities")
        await settled()
        assert one.bens_person == "person:1"


async def test_a_check_looks_itself_where_the_last_look_is_too_old(
    process: tuple[Process, MemoryStore], clock: ManualClock
) -> None:
    """As after a process stood still: its timer has not run yet."""
    one, store = process
    await link(store)
    await one.copies.fresh()
    assert one.bens_person == BEN.key
    await clock.advance(LOOK_S + 0.1)
    reads = one.changes.reads
    await asyncio.gather(*(one.copies.fresh() for _ in range(5)))
    assert one.bens_person == "person:1"
    assert one.changes.reads == reads + 1


async def test_while_the_store_cannot_be_read_a_check_fails_and_the_looks_continue(
    process: tuple[Process, MemoryStore], clock: ManualClock
) -> None:
    one, store = process
    async with running(one.copies):
        await settled()
        await link(store)
        one.changes.fails = True
        await clock.advance(LOOK_S + 0.1)
        await settled()
        with pytest.raises(StorageError):
            await one.copies.fresh()
        one.changes.fails = False
        await clock.advance(LOOK_S)
        await settled()
        assert one.bens_person == "person:1"
