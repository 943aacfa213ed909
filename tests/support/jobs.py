"""A job runner without a gateway, and what the book still holds."""

from __future__ import annotations

from gateway.runtime.tasks import Supervisor
from gateway.scheduling.jobs import JobRunner
from gateway.scheduling.reminders import REMINDER
from gateway.storage.owners import SharedStore
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock


class RunnerHarness:
    """A JobRunner on a store's book; `results` are kind and result of the attempts that ended. With the id
    `process` it is one of several on the store."""

    def __init__(self, store: Store, clock: Clock, *, process: str = "") -> None:
        self.results: list[tuple[str, str]] = []
        self.tasks = Supervisor()
        self.runner = JobRunner(
            book=store.jobs,
            clock=clock,
            spawn=self.tasks.spawn,
            count=lambda kind, result: self.results.append((kind, result)),
            redact=lambda text: text.replace("hunter2", "(REDACTED)"),
            shared=store.jobs if process and isinstance(store, SharedStore) else None,
            process=process,
        )


async def next_reminder(store: Store) -> float | None:
    """When the next reminder is due, as Unix time; None without any."""
    return await store.jobs.next_ready(REMINDER)
