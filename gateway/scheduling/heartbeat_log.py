"""The newest events of the heartbeat, for `/heartbeat` and the metrics."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Literal, get_args

from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass

_log = logging.getLogger(__name__)

EventName = Literal[
    "scheduler_started",
    "scheduler_check",
    "heartbeat_skipped",
    "heartbeat_triggered",
    "heartbeat_completed",
    "heartbeat_error",
    "heartbeat_already_running",
]
EVENTS: Final[tuple[EventName, ...]] = get_args(EventName)
KEPT: Final = 200
"""Events that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatEvent:
    """One event."""

    name: EventName
    at: float
    """Unix time."""
    owner: str = ""
    """Whose heartbeat; empty for none."""
    reason: str = ""
    """In this program's words."""


class HeartbeatLog:
    """The events of this process. `count` is called with the name of each."""

    def __init__(self, clock: Clock, count: Callable[[str], None]) -> None:
        self._clock = clock
        self._count = count
        self._kept: deque[HeartbeatEvent] = deque(maxlen=KEPT)

    def note(self, name: EventName, *, owner: str = "", reason: str = "") -> None:
        """Add an event now."""
        event = HeartbeatEvent(name=name, at=self._clock.now(), owner=owner, reason=reason)
        self._kept.append(event)
        self._count(name)
        level = logging.DEBUG if name == "scheduler_check" else logging.INFO
        _log.log(level, "heartbeat", extra={"event": name, "reason": reason})

    def newest(self, owner: str | None = None) -> tuple[HeartbeatEvent, ...]:
        """The events, oldest first; those of one owner and of none, if one is given."""
        return tuple(one for one in self._kept if owner is None or one.owner in ("", owner))
