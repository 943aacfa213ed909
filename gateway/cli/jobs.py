"""`parlour jobs`: list the work that is waiting or was given up, retry it and drop it, also beside a running
gateway, which reads the job book every minute."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from adapters.formatting.visible import visible
from gateway.cli.findings import Finding
from gateway.cli.graph import complain, write_out
from gateway.cli.stored_books import StorePlace, stored_books
from gateway.storage.jobs import Job, JobBook
from gateway.storage.sqlite.jobs import SqliteJobs
from gateway.storage.sqlite.offline import beside
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import StorageError

T = TypeVar("T")

_OK = 0
_SHOWN = 200
_STEPS = ((86_400, "days"), (3_600, "h"), (60, "min"), (1, "s"))


def list_jobs(place: StorePlace, clock: Clock | None = None) -> int:
    """Print every job, those that were given up first. Exit code 0. Raises StorageError."""
    now = (clock or SystemClock()).now()
    jobs = _in_book(place, lambda book: book.listed(limit=_SHOWN + 1))
    dead = sum(job.state == "dead" for job in jobs)
    if not jobs:
        write_out("no job is waiting, and none was given up\n")
        return _OK
    count = f"more than {_SHOWN}" if len(jobs) > _SHOWN else str(len(jobs))
    write_out(f"jobs: {count}, given up: {dead}\n")
    for job in jobs[:_SHOWN]:
        where = f"  {visible(job.thread)}" if job.thread else ""
        write_out(f"  {job.id}  {visible(job.kind)}  {_state(job, now)}{where}\n")
    if dead:
        write_out("`parlour jobs retry ID` runs one again, `parlour jobs drop ID` deletes it\n")
    return _OK


def retry_job(place: StorePlace, job_id: int) -> int:
    """Make a job that was given up due now. Exit code 0, or 1 without such a job. Raises StorageError."""
    if not _in_book(place, lambda book: book.reopen(job_id)):
        return complain(f"no job with the id {job_id} was given up; `parlour jobs` lists those that were")
    write_out(f"job {job_id} is due again; a running gateway starts it within a minute\n")
    return _OK


def drop_job(place: StorePlace, job_id: int) -> int:
    """Delete a job. Exit code 0, or 1 if there is no such one. Raises StorageError."""
    if not _in_book(place, lambda book: book.drop(job_id)):
        return complain(f"there is no job with the id {job_id}; `parlour jobs` lists those that there are")
    write_out(f"job {job_id} is deleted\n")
    return _OK


async def jobs_finding(store_path: Path) -> Finding:
    """Whether jobs were given up."""
    try:
        async with beside(store_path, SqliteJobs) as book:
            jobs = await book.listed(limit=_SHOWN)
    except StorageError as error:
        return Finding(name="jobs", good=False, words=str(error))
    dead = [job for job in jobs if job.state == "dead"]
    if not dead:
        return Finding(name="jobs", good=True, words=f"{len(jobs)} waiting, none given up")
    kinds = ", ".join(sorted({visible(job.kind) for job in dead}))
    words = f"{len(dead)} given up ({kinds}); `parlour jobs` lists them with the reason"
    return Finding(name="jobs", good=False, words=words)


def _in_book(place: StorePlace, ask: Callable[[JobBook], Awaitable[T]]) -> T:
    async def asked() -> T:
        async with stored_books(place) as books:
            return await ask(books.jobs)

    return asyncio.run(asked())


def _state(job: Job, now: float) -> str:
    """What becomes of the job next, and why."""
    error = visible(" ".join(job.error.split()))
    if job.state == "dead":
        return f"given up after {_times(job.attempts)}: {error}"
    if job.claimed:
        return "at work"
    if error:
        return f"failed {_times(job.attempts)}, again {_from_now(job.ready - now)}: {error}"
    return f"due {_from_now(job.ready - now)}"


def _times(attempts: int) -> str:
    return "1 attempt" if attempts == 1 else f"{attempts} attempts"


def _from_now(seconds: float) -> str:
    for size, unit in _STEPS:
        if seconds >= size:
            return f"in {seconds / size:.0f} {unit}"
    return "now"
