"""Work that one of several processes does: never two at once, and taken over from one that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.runtime.tasks import Supervisor
from gateway.scheduling.elected_work import ELECTED, ElectedWork
from gateway.storage.copies import LOOK_S
from gateway.storage.lease import Lease
from gateway.storage.memory import MemoryStore
from gateway.storage.owners import UNTIL_GONE
from gateway.storage.shared_leases import SharedCoordinator
from pipeline.domain.clock import ManualClock

TTL_S = 6.0


class Leases(SharedCoordinator):
    """Of a process that can be killed: then it gives nothing back."""

    killed = False

    async def release(self, lease: Lease) -> None:
        if not self.killed:
            await super().release(lease)


class Process:
    """One process: `at_work` is how many of its two kinds of work run."""

    def __init__(self, store: MemoryStore, clock: ManualClock, name: str) -> None:
        self.tasks = Supervisor()
        self.leases = Leases(
            store, store.owners, clock, name=name, role="work", version="1", beat_s=2.0, ttl_s=TTL_S
        )
        self.elected = ElectedWork(self.leases, clock, self.tasks.spawn)
        self.at_work = 0
        self.begun = 0
        for kind in ("one", "two"):
            self.elected.add(kind, self._work)

    async def start(self) -> None:
        await self.leases.report()
        self.tasks.spawn(self.leases.keep_renewing(), name="reports")
        self.tasks.spawn(self.elected.run(), name="elected")

    async def _work(self) -> None:
        self.at_work += 1
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.at_work -= 1


@pytest.fixture
async def cluster() -> AsyncIterator[tuple[ManualClock, MemoryStore, list[Process]]]:
    store, clock = MemoryStore(), ManualClock()
    await store.open()
    processes = [Process(store, clock, name) for name in ("a", "b")]
    for one in processes:
        await one.start()
    await clock.advance(LOOK_S)
    yield clock, store, processes
    for one in processes:
        await one.tasks.close()


async def test_one_process_does_the_work(cluster: tuple[ManualClock, MemoryStore, list[Process]]) -> None:
    clock, _, (first, second) = cluster
    for _ in range(30):
        assert (first.at_work, second.at_work) == (2, 0)
        await clock.advance(LOOK_S)
    assert first.begun == 2


async def test_another_takes_over_from_one_that_is_gone(
    cluster: tuple[ManualClock, MemoryStore, list[Process]],
) -> None:
    clock, _, (first, second) = cluster
    first.leases.killed = True
    await first.tasks.close()
    await clock.advance(TTL_S + LOOK_S)
    assert second.at_work == 2


async def test_another_takes_over_at_once_from_one_that_stops(
    cluster: tuple[ManualClock, MemoryStore, list[Process]],
) -> None:
    clock, _, (first, second) = cluster
    await first.tasks.close()
    await clock.advance(LOOK_S)
    assert (first.at_work, second.at_work) == (0, 2)


async def test_one_that_lost_the_lease_ends_the_work_and_may_get_it_again(
    cluster: tuple[ManualClock, MemoryStore, list[Process]],
) -> None:
    clock, store, (first, second) = cluster
    # As if it had stood still for longer than its time to live.
    await store.owners.retire(first.leases.owner)
    await store.acquire_lease(ELECTED, second.leases.owner, ttl_s=UNTIL_GONE, now=clock.now())
    await clock.advance(3 * LOOK_S)
    assert (first.at_work, second.at_work) == (0, 2)
    await second.tasks.close()
    await clock.advance(3 * LOOK_S)
    assert (first.at_work, first.begun) == (2, 4)


async def test_while_the_store_is_away_it_is_tried_again() -> None:
    store, clock = MemoryStore(), ManualClock()
    await store.open()
    process = Process(store, clock, "a")
    await process.leases.report()
    await store.close()
    process.tasks.spawn(process.elected.run(), name="elected")
    await clock.advance(3 * LOOK_S)
    assert process.at_work == 0
    await store.open()
    await clock.advance(LOOK_S)
    assert process.at_work == 2
    await process.tasks.close()
