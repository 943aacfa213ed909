"""Enqueue the operator's notices of crisis responses, once each; `gateway.safety.notices` makes them.

A turn posts a notice, like every other reply; this module knows no channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.runtime.crash_labels import CrashLabels
from gateway.safety.notices import NOTICE, announcement
from gateway.scheduling.jobs import JobImpossible, JobKind, JobRunner
from gateway.storage.codec import new_entry
from gateway.storage.jobs import Job
from gateway.storage.ports import Store
from pipeline.domain.errors import InvalidInput

_MAX_ATTEMPTS = 1_000
"""Its handler cannot end the process, so the deaths during its attempts have other causes."""


class NoticeJobs:
    """Does the jobs. `wake` is called with a thread that has work."""

    def __init__(
        self, *, jobs: JobRunner, store: Store, wake: Callable[[str], None], crash_labels: CrashLabels
    ) -> None:
        self._store = store
        self._wake = wake
        self._crash_labels = crash_labels
        jobs.handle(JobKind(name=NOTICE, run=self._hand_over, max_attempts=_MAX_ATTEMPTS))

    async def _hand_over(self, job: Job) -> None:
        """Enqueue the notice. Its key prevents a second one, after a crash and within the hour."""
        try:
            item = announcement(job)
        except (InvalidInput, KeyError, TypeError, ValueError, OverflowError) as error:
            raise JobImpossible(f"the notice cannot be read: {error}") from error
        await self._store.accept(replace(new_entry(item), dedupe_key=f"{NOTICE}:{job.key}"))
        self._crash_labels.reach("crisis-notice-queued")
        self._wake(job.thread)
