"""Run the jobs of the job book when they are due, each kind by its handler, and try failed ones again.

A handler may run twice for one job: when the process dies between its work and the record that it is done. So
its work must be repeatable. Work that is not, such as a tool call or a post, belongs into a turn: the handler
enqueues an inbox entry under a dedupe key, and the turn records its effects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Literal, NoReturn

from gateway.runtime.due_work import DueWork
from gateway.storage.copies import LOOK_S
from gateway.storage.jobs import Job, JobBook, NewJob, SharedJobBook
from pipeline.domain.background import Spawn
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.graph.execution.control import asked_to_stop

_log = logging.getLogger(__name__)

RETRY_AFTER_S = (1.0, 5.0, 30.0, 120.0, 600.0)
MAX_ATTEMPTS = 8
_TIMEOUT_S = 600.0
_MARGIN_S = 60.0
"""How much longer than its time limit a job stays claimed, in seconds: for the record of its result."""
_STORE_AGAIN_S = 5.0
_ERROR_CHARS = 300


class JobImpossible(Exception):
    """No further attempt can succeed: the job is given up at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """What to do with the jobs of one kind."""

    name: str
    run: Callable[[Job], Awaitable[float | None]]
    """Does the work and returns None. Returns seconds if it could not begin or end its work now, and is to be
    called again after them: the attempt does not count. An exception is a failed attempt."""
    at_once: int = 1
    """How many run at the same time. With 1, they run in the order of their due times."""
    timeout_s: float = _TIMEOUT_S
    retry_after_s: tuple[float, ...] = RETRY_AFTER_S
    """Seconds to the next attempt after the first, second, … failed one; the last value repeats."""
    max_attempts: int = MAX_ATTEMPTS
    """After so many failed attempts the job is dead. An attempt during which the process died counts."""


class JobRunner:
    """Runs due jobs. Register every kind with `handle`, then call `recover` once and run `run` as a
    supervised task. `count` is called with kind and result of every attempt; `redact` removes secrets from an
    error's text."""

    def __init__(
        self,
        *,
        book: JobBook,
        clock: Clock,
        spawn: Spawn,
        count: Callable[[str, str], None],
        redact: Callable[[str], str],
        shared: SharedJobBook | None = None,
        process: str = "",
    ) -> None:
        """Where several processes run jobs, `shared` is the book of all, and `process` the id under which
        this one reports that it is alive."""
        self._book = book
        self._clock = clock
        self._spawn = spawn
        self._count = count
        self._redact = redact
        self._shared = shared
        self._process = process
        self._queues: dict[str, _Queue] = {}

    def handle(self, kind: JobKind) -> None:
        """Run the jobs of this kind."""
        self._queues[kind.name] = _Queue(
            kind, self._book, self._clock, self._spawn, self._count, self._redact, self._process
        )

    async def add(self, job: NewJob, *, limit: int | None = None) -> bool:
        """As `JobBook.add`; the job runs when it is due."""
        added = await self._book.add(job, limit=limit)
        self.note_added((job,))
        return added

    def note_added(self, jobs: Sequence[NewJob]) -> None:
        """Check the due times again, after jobs were added together with a turn's commit."""
        for job in jobs:
            if job.kind in self._queues:
                self._queues[job.kind].work.wake()

    async def recover(self) -> int:
        """Take over what a dead process had claimed; how many jobs. Call before `run`."""
        if self._shared is not None:
            return await self._shared.take_back(now=self._clock.now())
        return await self._book.break_leases()

    async def run(self) -> None:
        """Run due jobs, for ever, beginning with those that an earlier process left."""
        async with asyncio.TaskGroup() as group:
            for queue in self._queues.values():
                group.create_task(queue.work.run())
            if self._shared is not None:
                group.create_task(self._look(self._shared))

    async def _look(self, book: SharedJobBook) -> NoReturn:
        """Find what other processes have added, and what those that are gone had claimed. One read serves
        all kinds."""
        while True:
            await self._clock.sleep(LOOK_S)
            try:
                await book.take_back(now=self._clock.now())
                soonest = await book.soonest(self._queues.keys())
            except StorageError as error:
                _log.warning("jobs of other processes are not read", extra={"reason": str(error)})
                continue
            now = self._clock.now()
            for kind, ready in soonest.items():
                if ready <= now:
                    self._queues[kind].work.wake()


class _Queue:
    """The jobs of one kind."""

    def __init__(
        self,
        kind: JobKind,
        book: JobBook,
        clock: Clock,
        spawn: Spawn,
        count: Callable[[str, str], None],
        redact: Callable[[str], str],
        process: str,
    ) -> None:
        self._process = process
        self._kind = kind
        self._book = book
        self._clock = clock
        self._spawn = spawn
        self._count = count
        self._redact = redact
        self._free = asyncio.Semaphore(kind.at_once)
        self.work = DueWork(
            do_due=self._start_next, next_due=self._next_ready, clock=clock, name=f"jobs: {kind.name}"
        )

    async def _next_ready(self) -> float | None:
        return await self._book.next_ready(self._kind.name)

    async def _start_next(self) -> None:
        """Start the next job that is ready, when fewer than `at_once` run."""
        # Read first, because a claim is a write even where it finds nothing.
        ready = await self._next_ready()
        if ready is None or ready > self._clock.now():
            return
        await self._free.acquire()
        now = self._clock.now()
        try:
            until = now + self._kind.timeout_s + _MARGIN_S
            job = await self._book.claim(self._kind.name, now=now, until=until, by=self._process)
        except BaseException:
            self._free.release()
            raise
        if job is None:
            self._free.release()
        else:
            self._spawn(self._attempt(job), name=f"job {job.kind}")

    async def _attempt(self, job: Job) -> None:
        try:
            await self._settle(job, await self._result(job))
        except asyncio.CancelledError:
            # The gateway stops: that is not the job's fault.
            with suppress(StorageError):
                await self._book.retry(job, at=self._clock.now(), error=job.error, counted=False)
            raise
        finally:
            self._free.release()
            self.work.wake()

    async def _result(self, job: Job) -> _Result:
        """Do the job's work once; the result to record."""
        try:
            async with self._clock.timeout(self._kind.timeout_s):
                again_s = await self._kind.run(job)
        except asyncio.CancelledError:
            if asked_to_stop():
                raise
            return self._failed(job, "something that it waited for was cancelled")
        except JobImpossible as error:
            return _Result("dead", error=str(error))
        except TimeoutError:
            return self._failed(job, f"it took longer than {self._kind.timeout_s:.0f} s")
        except StorageError as error:
            _log.warning("a job waits for the store", extra={"job": job.kind, "reason": str(error)})
            return _Result("later", after_s=_STORE_AGAIN_S)
        except Exception as error:  # noqa: BLE001 - any failure is one of this job alone
            _log.info("a job failed", extra={"job": job.kind}, exc_info=True)
            return self._failed(job, f"{type(error).__name__}: {error}")
        return _Result("done") if again_s is None else _Result("later", after_s=again_s)

    def _failed(self, job: Job, error: str) -> _Result:
        error = self._redact(error)[:_ERROR_CHARS]
        if job.attempts >= self._kind.max_attempts:
            return _Result("dead", error=error)
        steps = self._kind.retry_after_s
        return _Result("failed", error=error, after_s=steps[min(job.attempts, len(steps)) - 1])

    async def _settle(self, job: Job, result: _Result) -> None:
        """Record the result, durably, however long the store takes: until then the job counts as claimed."""
        while True:
            try:
                await self._record(job, result)
            except StorageError as error:
                _log.warning(
                    "a job's result waits for the store", extra={"job": job.kind, "reason": str(error)}
                )
                await self._clock.sleep(_STORE_AGAIN_S)
            else:
                self._count(job.kind, result.name)
                return

    async def _record(self, job: Job, result: _Result) -> None:
        if result.name == "done":
            await self._book.done(job)
        elif result.name == "dead":
            await self._book.give_up(job, error=result.error)
            named = {"job": job.kind, "id": job.id, "reason": result.error, "thread_key": job.thread}
            _log.error("a job is given up: `parlour jobs` lists it", extra=named)
        else:
            at = self._clock.now() + result.after_s
            counted = result.name == "failed"
            await self._book.retry(job, at=at, error=result.error, counted=counted)


@dataclass(frozen=True, slots=True)
class _Result:
    name: Literal["done", "later", "failed", "dead"]
    error: str = ""
    after_s: float = 0.0
    """Seconds to the next attempt."""
