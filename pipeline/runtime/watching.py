"""The port to what is watched for people, and to their heartbeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pipeline.domain.frozen import dataclass
from pipeline.runtime.scope import TurnScope
from pipeline.watches.conditions import WatchCondition
from pipeline.watches.words import Intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchNote:
    """One thing that is watched for a person."""

    id: str
    condition: WatchCondition
    text: str
    """What is done when it happens."""
    zone: str = "UTC"
    from_document: bool = False
    """It is a line of HEARTBEAT.md, which alone can end it."""
    failing: bool = False
    """Its last checks have failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatShown:
    """A person's heartbeat, to show it."""

    is_on: bool
    has_document: bool
    """Whether HEARTBEAT.md is theirs."""
    every_s: float
    to: str
    """The chat that gets the results, as an encoded thread key."""
    watches: Sequence[WatchNote] = ()
    problems: Sequence[str] = ()
    """Lines of HEARTBEAT.md that cannot be read."""
    last: Sequence[Mapping[str, Any]] = ()
    """The newest heartbeats: `at`, `status`, `cycles`, `sent`, `problem`."""
    events: Sequence[tuple[float, str, str]] = ()
    """The newest events of the scheduler: Unix time, name, reason."""


class Watches(Protocol):
    """What is watched for a turn's author. No other person sees or ends it. Methods raise StorageError."""

    @property
    def intervals(self) -> Intervals:
        """How often is checked where a person does not say."""
        ...

    async def add(self, note: WatchNote, scope: TurnScope, *, limit: int) -> bool:
        """Watch it from now on, durably; False if the author already has `limit` watches."""
        ...

    async def remove(self, watch_id: str, scope: TurnScope) -> bool:
        """End one of the author's watches; False if there is no such one."""
        ...


class Heartbeats(Protocol):
    """The heartbeats of a turn's author. Methods raise StorageError."""

    async def shown(self, scope: TurnScope) -> HeartbeatShown | None:
        """The author's heartbeat; None where heartbeats are off."""
        ...

    async def turn(self, scope: TurnScope, *, on: bool) -> None:
        """Turn the author's heartbeats and watches on or off, durably."""
        ...

    async def send_here(self, scope: TurnScope) -> None:
        """Send what the author's heartbeats tell to the turn's chat from now on, durably."""
        ...

    async def remove(self, watch_id: str, scope: TurnScope) -> bool:
        """See `Watches.remove`."""
        ...
