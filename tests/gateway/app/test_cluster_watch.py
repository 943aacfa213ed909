"""What Prometheus reads of the processes that share a store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway.app.cluster_watch import READ_EVERY_S, ClusterWatch
from gateway.runtime.metrics import Telemetry
from gateway.runtime.tasks import Supervisor
from gateway.storage.memory import MemoryStore
from gateway.storage.owners import Owner
from gateway.storage.shared_leases import SharedCoordinator
from pipeline.domain.clock import ManualClock
from tests.contracts.store_values import entry


class Scraped:
    """One process that counts the others."""

    def __init__(self) -> None:
        self.store, self.clock, self.tasks = MemoryStore(), ManualClock(), Supervisor()
        self.leases = SharedCoordinator(
            self.store,
            self.store.owners,
            self.clock,
            name="a",
            role="edge",
            version="1",
            beat_s=2.0,
            ttl_s=600.0,
        )
        self._telemetry = Telemetry(self.clock)
        self.room: int | None = None
        watch = ClusterWatch(
            self.store.owners, self.store.formats, self.leases, self.clock, lambda: self.room
        )
        self._telemetry.watch_cluster(watch.figures)
        self.watch = watch

    async def start(self) -> None:
        await self.store.open()
        await self.leases.report()
        self.tasks.spawn(self.watch.run(), name="processes")
        await self.clock.advance(0.0)

    def lines(self) -> dict[str, float]:
        exposed = self._telemetry.exposition().decode().splitlines()
        named = ("parlour_cluster", "parlour_threads", "parlour_store_format")
        ours = [one for one in exposed if one.startswith(named)]
        return {line.split()[0]: float(line.split()[1]) for line in ours}


@pytest.fixture
async def scraped() -> AsyncIterator[Scraped]:
    made = Scraped()
    await made.start()
    yield made
    await made.tasks.close()


async def test_the_living_are_counted_by_role_and_the_work_without_a_process(scraped: Scraped) -> None:
    for name, ttl_s in (("b", 600.0), ("c", 600.0), ("gone", -1.0)):
        owner = Owner(id=name, name=name, role="work", version="1")
        await scraped.store.owners.beat(owner, ttl_s=ttl_s, now=scraped.clock.now())
    await scraped.store.accept(entry("1"))
    await scraped.clock.advance(READ_EVERY_S)
    assert scraped.lines() == {
        'parlour_cluster_owners{role="edge"}': 1.0,
        'parlour_cluster_owners{role="work"}': 2.0,
        'parlour_cluster_versions{format="1",version="1"}': 3.0,
        "parlour_cluster_beat_age_seconds": READ_EVERY_S,
        "parlour_store_format": 1.0,
        "parlour_store_format_waiting": 0.0,
        "parlour_threads_unowned": 1.0,
    }


async def test_while_the_store_is_away_no_old_number_is_shown(scraped: Scraped) -> None:
    assert scraped.lines()["parlour_threads_unowned"] == 0.0
    await scraped.store.close()
    await scraped.clock.advance(READ_EVERY_S)
    assert scraped.lines() == {
        "parlour_cluster_beat_age_seconds": READ_EVERY_S,
        "parlour_store_format": 1.0,
        "parlour_store_format_waiting": 0.0,
    }
    await scraped.store.open()
    await scraped.clock.advance(READ_EVERY_S)
    assert scraped.lines()['parlour_cluster_owners{role="edge"}'] == 1.0


async def test_full_workers_are_a_line_and_a_number(scraped: Scraped) -> None:
    assert scraped.watch.lines() == ()
    scraped.room = 0
    assert scraped.lines()["parlour_cluster_room"] == 0.0
    (line,) = scraped.watch.lines()
    assert line.startswith("workers full: each runs as many turns as it may")
    scraped.room = 3
    assert scraped.watch.lines() == ()
