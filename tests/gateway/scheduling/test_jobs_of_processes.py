"""Several processes run the jobs of one database: each due job once, also when one of them is killed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from gateway.scheduling.jobs import JobKind
from gateway.storage.jobs import Job, NewJob
from gateway.storage.owners import Owner
from gateway.storage.postgres import PostgresStore
from pipeline.domain.clock import SystemClock
from tests.support.jobs import RunnerHarness

JOBS = 500


class Process:
    """A job runner with a separate connection; `began` are the keys of the jobs that it has begun."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.store = PostgresStore(url)
        self.began: list[str] = []
        self.harness = RunnerHarness(self.store, SystemClock(), process=name)
        self.harness.runner.handle(JobKind(name="work", run=self._run, at_once=8))
        self.hangs_after = JOBS
        """From then on its jobs do not end."""

    async def start(self) -> None:
        await self.beat(600.0)
        await self.harness.runner.recover()
        self.harness.tasks.spawn(self.harness.runner.run(), name="jobs")

    async def beat(self, ttl_s: float) -> None:
        owner = Owner(id=self.name, name=self.name, role="work", version="1")
        await self.store.owners.beat(owner, ttl_s=ttl_s, now=0.0)

    async def kill(self) -> None:
        """End it as a kill does: nothing is recorded any more."""
        await self.store.close()
        await self.harness.tasks.close()

    async def _run(self, job: Job) -> float | None:
        self.began.append(job.key)
        if len(self.began) > self.hangs_after:
            await asyncio.Event().wait()
        return None


@pytest.fixture
async def two(postgres_url: str) -> AsyncIterator[tuple[Process, Process]]:
    processes = Process(postgres_url, "own_a"), Process(postgres_url, "own_b")
    for one in processes:
        await one.store.open()
    yield processes
    for one in processes:
        await one.harness.tasks.close()
        await one.store.close()


async def until(done: Callable[[], bool]) -> None:
    while not done():  # noqa: ASYNC110 - the runners wait for a database
        await asyncio.sleep(0.01)


async def add_jobs(store: PostgresStore, number: int) -> None:
    for n in range(number):
        await store.jobs.add(NewJob(kind="work", key=f"{n:03}", due=1.0))


async def test_each_of_many_due_jobs_runs_once(two: tuple[Process, Process]) -> None:
    first, second = two
    await add_jobs(first.store, JOBS)
    await asyncio.gather(first.start(), second.start())
    await until(lambda: len(first.harness.results) + len(second.harness.results) == JOBS)
    assert Counter(first.began + second.began) == Counter(f"{n:03}" for n in range(JOBS))
    assert first.began
    assert second.began
    assert await first.store.jobs.listed(limit=9) == ()


async def test_what_a_killed_process_had_claimed_runs_in_the_other(two: tuple[Process, Process]) -> None:
    first, second = two
    first.hangs_after = 20
    await add_jobs(first.store, 60)
    await first.start()
    # Twenty are done, and eight hang.
    await until(lambda: len(first.began) == 28 and len(first.harness.results) == 20)
    await second.start()
    await until(lambda: len(second.harness.results) == 32)
    hanging = set(first.began[20:])
    assert hanging.isdisjoint(second.began)
    await first.kill()
    await second.store.owners.retire(first.name)
    await until(lambda: len(second.harness.results) == 40)
    assert set(second.began[32:]) == hanging
    assert await second.store.jobs.listed(limit=9) == ()


async def test_a_job_that_another_process_adds_runs_within_a_look(two: tuple[Process, Process]) -> None:
    first, second = two
    await first.start()
    await second.store.jobs.add(NewJob(kind="work", key="new", due=1.0))
    await until(lambda: bool(first.harness.results))
    assert first.harness.results == [("work", "done")]
