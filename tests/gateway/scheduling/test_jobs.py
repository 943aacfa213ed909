"""Jobs run when they are due, one result each: done, tried again, or given up with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.scheduling.jobs import JobImpossible, JobKind
from gateway.storage.jobs import Job, NewJob
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from tests.support.jobs import RunnerHarness


class Work:
    """A handler with prepared results, and the runner that calls it."""

    def __init__(self, store: MemoryStore | None = None, **kind: Any) -> None:
        self.store = store or MemoryStore()
        self.clock = ManualClock()
        self.harness = RunnerHarness(self.store, self.clock)
        self.results: list[BaseException | float | None] = []
        """What the next calls raise or return; then they return None."""
        self.began: list[str] = []
        self.gate: asyncio.Event | None = None
        self.harness.runner.handle(JobKind(name="work", run=self._run, **kind))

    async def _run(self, job: Job) -> float | None:
        self.began.append(job.key)
        if self.gate is not None:
            await self.gate.wait()
        result = self.results.pop(0) if self.results else None
        if isinstance(result, BaseException):
            raise result
        return result

    async def add(self, key: str = "1", in_s: float = 0.0) -> None:
        await self.harness.runner.add(NewJob(kind="work", key=key, due=self.clock.now() + in_s))
        await self.clock.advance(0)

    async def the_job(self) -> Job:
        (job,) = await self.store.jobs.listed(limit=9)
        return job

    @property
    def ended(self) -> list[str]:
        return [result for _, result in self.harness.results]


@asynccontextmanager
async def at_work(work: Work) -> AsyncIterator[Work]:
    await work.store.open()
    await work.harness.runner.recover()
    work.harness.tasks.spawn(work.harness.runner.run(), name="jobs")
    await work.clock.advance(0)
    try:
        yield work
    finally:
        await work.harness.tasks.close()


async def test_a_job_runs_when_it_is_due_and_is_gone_when_it_is_done() -> None:
    async with at_work(Work()) as work:
        await work.add(in_s=100)
        await work.clock.advance(99)
        assert work.began == []
        await work.clock.advance(1)
        assert (work.began, work.ended) == (["1"], ["done"])
        assert await work.store.jobs.listed(limit=9) == ()


async def test_a_failed_job_is_tried_again_later_each_time_and_then_given_up() -> None:
    async with at_work(Work(retry_after_s=(10.0, 60.0), max_attempts=4)) as work:
        work.results = [ValueError(f"hunter2 {number}") for number in range(9)]
        await work.add()
        for wait_s in (10, 60, 60):
            await work.clock.advance(wait_s - 1)
            before = len(work.began)
            await work.clock.advance(1)
            assert len(work.began) == before + 1
        job = await work.the_job()
        assert (job.state, job.attempts, job.error) == ("dead", 4, "ValueError: (REDACTED) 3")
        await work.clock.advance(10_000)
        assert len(work.began) == 4
        assert work.ended == ["failed", "failed", "failed", "dead"]


async def test_an_impossible_job_is_given_up_at_once() -> None:
    async with at_work(Work()) as work:
        work.results = [JobImpossible("it cannot be read")]
        await work.add()
        job = await work.the_job()
        assert (job.state, job.error, work.ended) == ("dead", "it cannot be read", ["dead"])


async def test_a_job_that_cannot_run_now_waits_as_long_as_it_asks_and_loses_no_attempt() -> None:
    async with at_work(Work(max_attempts=1)) as work:
        work.results = [30.0, 0.0]
        await work.add()
        assert (await work.the_job()).attempts == 0
        await work.clock.advance(29)
        assert len(work.began) == 1
        await work.clock.advance(1)
        assert (len(work.began), work.ended) == (3, ["later", "later", "done"])


async def test_a_job_without_an_end_fails_at_its_time_limit() -> None:
    async with at_work(Work(timeout_s=20.0, max_attempts=1)) as work:
        work.gate = asyncio.Event()
        await work.add()
        await work.clock.advance(19)
        assert work.ended == []
        await work.clock.advance(1)
        assert (await work.the_job()).error == "it took longer than 20 s"


async def test_as_many_run_at_the_same_time_as_the_kind_allows_and_a_late_one_is_not_slept_through() -> None:
    async with at_work(Work(at_once=2)) as work:
        work.gate = asyncio.Event()
        for key in ("a", "b", "c", "d"):
            await work.add(key)
        assert work.began == ["a", "b"]
        work.gate.set()
        await work.clock.advance(0)
        assert work.began == ["a", "b", "c", "d"]
        assert await work.store.jobs.next_ready("work") is None


async def test_a_stop_takes_the_attempt_back_and_the_next_start_does_the_job() -> None:
    store = MemoryStore()
    async with at_work(Work(store)) as work:
        work.gate = asyncio.Event()
        await work.add()
        assert work.began == ["1"]
    (job,) = await store.jobs.listed(limit=9)
    assert (job.attempts, job.claimed) == (0, False)
    async with at_work(Work(store)) as again:
        assert (again.began, again.ended) == (["1"], ["done"])


async def test_what_a_dead_process_had_claimed_is_done_at_the_next_start_and_the_attempt_counts() -> None:
    store = MemoryStore()
    await store.open()
    await store.jobs.add(NewJob(kind="work", key="1", due=0.0))
    assert await store.jobs.claim("work", now=1.0, until=9e9) is not None
    work = Work(store)
    work.results = [ValueError("no")]
    async with at_work(work):
        assert (work.began, (await work.the_job()).attempts) == (["1"], 2)


async def test_a_kind_without_a_handler_is_left_in_the_book() -> None:
    async with at_work(Work()) as work:
        await work.harness.runner.add(NewJob(kind="other", key="1", due=0.0))
        await work.clock.advance(1_000)
        assert (await work.the_job()).attempts == 0


class Full(MemoryStore):
    """A store whose jobs cannot be ended, so many times."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        ended = self.jobs.done

        async def done(job: Job) -> bool:
            if self.failures:
                self.failures -= 1
                raise StorageError("disk full")
            return await ended(job)

        self.jobs.done = done  # type: ignore[method-assign]  # the store that fails


async def test_a_result_that_the_store_refuses_is_recorded_when_it_takes_writes_again() -> None:
    async with at_work(Work(Full(3))) as work:
        await work.add()
        assert (work.began, work.ended) == (["1"], [])
        await work.clock.advance(15)
        assert (work.began, work.ended) == (["1"], ["done"])
        assert await work.store.jobs.listed(limit=9) == ()


@pytest.mark.parametrize("error", [StorageError("disk full"), asyncio.CancelledError()])
async def test_what_happens_around_a_job_does_not_end_its_kind(error: BaseException) -> None:
    async with at_work(Work()) as work:
        work.results = [error]
        await work.add("1")
        await work.add("2")
        await work.clock.advance(10)
        assert sorted(work.began) == ["1", "1", "2"]
        assert await work.store.jobs.listed(limit=9) == ()
