"""The port for counts of a minute that several processes share: messages of a person, wrong tokens of a
network.

Each process counts for itself too, so what cannot be read or written costs accuracy, and refuses no message.
Every implementation passes tests/contracts/test_shared_counts.py.
"""

from __future__ import annotations

from typing import Final, Protocol

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock

MOST_KEPT: Final = 300
"""Events of one key that are kept, the newest."""


class SharedCounts(Protocol):
    """Events by key, each with its time, counted by the processes of one gateway."""

    async def note(self, key: str, *, window_s: float) -> None:
        """Count an event now, for `window_s` seconds. Raises nothing."""
        ...

    async def others(self, key: str, *, window_s: float) -> tuple[float, ...]:
        """How many seconds ago other processes have counted events, within `window_s`, newest first; also a
        process that ended meanwhile. Empty where that cannot be read. Raises nothing."""
        ...

    @property
    def trouble(self) -> str:
        """Why each process counts for itself alone, one line; empty while they share."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


class LocalCounts:
    """Counts in a dictionary, which the processes of one test share by `beside`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: BoundedDict[str, list[tuple[float, object]]] = BoundedDict(10_000)
        self._own = object()

    def beside(self) -> LocalCounts:
        """The counts as another process sees them."""
        other = LocalCounts(self._clock)
        other._kept = self._kept
        return other

    async def note(self, key: str, *, window_s: float) -> None:
        """See `SharedCounts.note`."""
        now = self._clock.monotonic()
        kept = [one for one in self._kept.get(key) or [] if one[0] > now - window_s]
        self._kept[key] = [*kept, (now, self._own)][-MOST_KEPT:]

    async def others(self, key: str, *, window_s: float) -> tuple[float, ...]:
        """See `SharedCounts.others`."""
        now = self._clock.monotonic()
        kept = self._kept.get(key) or []
        return tuple(now - at for at, by in reversed(kept) if by is not self._own and at > now - window_s)

    @property
    def trouble(self) -> str:
        """See `SharedCounts.trouble`."""
        return ""

    async def close(self) -> None:
        """See `SharedCounts.close`."""
