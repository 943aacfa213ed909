"""What a process begins to watch with: what is stored, when it is checked first, and the open tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway.scheduling.heartbeat_document import DocumentFile
from gateway.scheduling.watch_checks import WatchFinding
from gateway.scheduling.watch_records import Watch, watch_of
from gateway.storage.heartbeats import HEARTBEAT_SETTINGS, WATCH, state_name, tasks_hash
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import heartbeat_thread
from pipeline.watches.conditions import digest

_log = logging.getLogger(__name__)

_TASKS_TEXT: Final = "It is time to look at the open tasks below."
_SPREAD_S: Final = 60.0
"""Over how many seconds the first checks after a start are spread."""


async def stored_watches(
    store: Store, *, with_document: bool
) -> tuple[dict[str, Mapping[str, Any]], list[Watch]]:
    """The settings by owner, and what is watched, in the order in which it was added; what a document wants
    only `with_document`. Raises StorageError."""
    settings = {job.key: job.body for job in await store.jobs.all_of(HEARTBEAT_SETTINGS)}
    found: list[Watch] = []
    for job in await store.jobs.all_of(WATCH):
        try:
            watch = watch_of(job)
        except (InvalidInput, KeyError, TypeError, ValueError) as error:
            _log.error("a watch cannot be read", extra={"id": job.key, "reason": str(error)})
            continue
        if with_document or not watch.from_document:
            found.append(watch)
    return settings, found


async def first_dues(watches: Iterable[Watch], store: Store, clock: Clock) -> dict[str, float]:
    """When each is checked first after a start. Raises StorageError."""
    dues: dict[str, float] = {}
    for one in watches:
        if one.condition.kind == "tasks":
            dues[one.id] = await tasks_due(one, store)
        else:
            dues[one.id] = first_due(one, clock.now(), at_start=True)
    return dues


def first_due(watch: Watch, now: float, *, at_start: bool) -> float:
    """The Unix time: now, but for open tasks, and for what is loaded at a start and has no times."""
    condition = watch.condition
    if condition.kind == "tasks":
        return now + condition.every_s
    if not at_start or condition.repetition is not None:
        return now
    return now + min(condition.every_s, _SPREAD_S) * (int(digest(watch.id)[:4], 16) / 0x10000)


async def tasks_due(watch: Watch, store: Store) -> float:
    """When the open tasks of a watch are looked at: an interval after the last heartbeat. Raises
    StorageError."""
    kept = await store.states.read(watch.owner, state_name(heartbeat_thread(watch.thread)))
    last = kept.body.get("last") if kept is not None else None
    began = float(watch.seen.get("at", 0.0))
    return max(began, float(last[-1]["at"]) if last else 0.0) + watch.condition.every_s


async def open_tasks(watch: Watch, document: DocumentFile | None, store: Store) -> WatchFinding:
    """Whether there are open tasks that were not done in the last heartbeat about them. Raises
    StorageError."""
    tasks = () if document is None else document.read.tasks
    kept = await store.states.read(watch.owner, state_name(heartbeat_thread(watch.thread)))
    is_done = kept is not None and kept.body.get("tasks_done") == tasks_hash(tasks)
    return WatchFinding(seen=watch.seen, text=_TASKS_TEXT if tasks and not is_done else "")


def place_of(watch: Watch) -> tuple[str, str, str, str]:
    """For whom, in which chat, by which agent and in which time zone it is watched."""
    return watch.owner, watch.thread.encode(), watch.agent, watch.zone
