"""Enqueue what heartbeats tell their person, once each; a turn posts it, like every other line."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from gateway.runtime.crash_labels import CrashLabels
from gateway.scheduling.jobs import JobImpossible, JobKind, JobRunner
from gateway.storage.codec import new_entry
from gateway.storage.heartbeats import HEARTBEAT_NEWS
from gateway.storage.jobs import Job
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, HeartbeatNews

_log = logging.getLogger(__name__)

_MAX_ATTEMPTS: Final = 1_000
"""Its handler cannot end the process, so the deaths during its attempts have other causes."""


class NewsJobs:
    """Does the jobs. `wake` is called with a thread that has work, `still_allowed` says whether the bot may
    still write to the person."""

    def __init__(
        self,
        *,
        jobs: JobRunner,
        store: Store,
        clock: Clock,
        wake: Callable[[str], None],
        still_allowed: Callable[[HeartbeatNews], Awaitable[bool]],
        crash_labels: CrashLabels,
    ) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake
        self._still_allowed = still_allowed
        self._crash_labels = crash_labels
        jobs.handle(JobKind(name=HEARTBEAT_NEWS, run=self._hand_over, max_attempts=_MAX_ATTEMPTS))

    async def _hand_over(self, job: Job) -> None:
        """Enqueue the line. Its key prevents a second one after a crash."""
        try:
            item = self._item(job)
        except (InvalidInput, KeyError, TypeError, ValueError) as error:
            raise JobImpossible(f"the news of a heartbeat cannot be read: {error}") from error
        if not await self._still_allowed(item):
            _log.info("a heartbeat's news is dropped: its person was shut out")
            return
        await self._store.accept(replace(new_entry(item), dedupe_key=f"{HEARTBEAT_NEWS}:{job.key}"))
        self._crash_labels.reach("heartbeat-news-queued")
        self._wake(job.thread)

    def _item(self, job: Job) -> HeartbeatNews:
        body, identity = job.body, f"{job.key}_news"
        return HeartbeatNews(
            message_id=identity,
            native_id=identity,
            thread=ThreadKey.decode(job.thread),
            author=Author(id=str(body["author"]), name=str(body.get("name", ""))),
            received_at=self._clock.now(),
            text=str(body["text"]),
            foreign=str(body.get("foreign", "")),
            labelled_as=str(body["session"]),
            private=bool(body.get("private", True)),
        )
