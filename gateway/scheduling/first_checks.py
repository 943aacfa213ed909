"""When what is watched is checked first by a process."""

from __future__ import annotations

from typing import Final

from gateway.scheduling.watch_records import Watch
from gateway.storage.heartbeats import state_name
from gateway.storage.ports import Store
from pipeline.domain.ids import heartbeat_thread
from pipeline.watches.conditions import digest

_SPREAD_S: Final = 60.0
"""Over how many seconds the first checks after a start are spread."""


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


def place_of(watch: Watch) -> tuple[str, str, str, str]:
    """For whom, in which chat, by which agent and in which time zone it is watched."""
    return watch.owner, watch.thread.encode(), watch.agent, watch.zone
