"""SqliteJobs against MemoryJobs as its model: whatever is done to both, both answer the same."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.storage.jobs import Job, NewJob
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from tests.contracts.store_values import NOW
from tests.contracts.test_store_model import Operation, outcome

KINDS = ("title", "reminder")
kinds = st.sampled_from(KINDS)
owners = st.sampled_from(("ann", "ben"))
small = st.integers(min_value=1, max_value=6)


class Books(RuleBasedStateMachine):
    """Two job books, the jobs claimed so far, and a clock that only the rules move."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._folder = tempfile.TemporaryDirectory()
        self._model = MemoryStore()
        self._sqlite = SqliteStore(Path(self._folder.name) / "store.db", synchronous="NORMAL")
        self._claimed: list[Job] = []
        self._now = NOW

    @initialize()
    def open_both(self) -> None:
        self._runner.run(self._model.open())
        self._runner.run(self._sqlite.open())

    def teardown(self) -> None:
        self._runner.run(self._sqlite.close())
        self._runner.close()
        self._folder.cleanup()

    @rule(key=small, kind=kinds, due_s=small, owner=owners, limit=st.none() | small)
    def add(self, key: int, kind: str, due_s: int, owner: str, limit: int | None) -> None:
        new = NewJob(kind=kind, key=str(key), due=self._now + due_s, owner=owner, body={"n": due_s})
        self._both(lambda store: store.jobs.add(new, limit=limit))

    @rule(kind=kinds, wait_s=small)
    def claim(self, kind: str, wait_s: int) -> None:
        self._now += wait_s
        now = self._now
        job = self._both(lambda store: store.jobs.claim(kind, now=now, until=now + 3))
        if isinstance(job, Job):
            self._claimed.append(job)

    @rule(back=small, end=st.sampled_from(("done", "retry", "later", "dead")), wait_s=small)
    def end(self, back: int, end: str, wait_s: int) -> None:
        if not self._claimed:
            return
        job, at = self._claimed[-min(back, len(self._claimed))], self._now + wait_s
        ends: dict[str, Operation] = {
            "done": lambda store: store.jobs.done(job),
            "retry": lambda store: store.jobs.retry(job, at=at, error="no"),
            "later": lambda store: store.jobs.retry(job, at=at, counted=False),
            "dead": lambda store: store.jobs.give_up(job, error="no"),
        }
        self._both(ends[end])

    @rule(number=small)
    def reopen(self, number: int) -> None:
        self._both(lambda store: store.jobs.reopen(number))

    @rule(number=small)
    def drop(self, number: int) -> None:
        self._both(lambda store: store.jobs.drop(number))

    @rule(key=small, kind=kinds, owner=owners)
    def remove(self, key: int, kind: str, owner: str) -> None:
        self._both(lambda store: store.jobs.remove(kind, owner, str(key)))

    @rule()
    def break_leases(self) -> None:
        self._both(lambda store: store.jobs.break_leases())

    @invariant()
    def both_hold_the_same(self) -> None:
        self._both(self._everything)

    async def _everything(self, store: Store) -> list[Any]:
        seen: list[Any] = [await store.jobs.listed(limit=50), await store.jobs.listed(limit=2, state="dead")]
        for kind in KINDS:
            seen += [await store.jobs.next_ready(kind), await store.jobs.of(kind, "ann")]
        return seen

    def _both(self, operation: Operation) -> Any:
        expected = self._runner.run(outcome(operation, self._model))
        actual = self._runner.run(outcome(operation, self._sqlite))
        assert actual == expected
        return actual


TestBooks = Books.TestCase
TestBooks.settings = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
