"""Keys by their due time: a heap, so that finding what is due costs nothing while nothing is."""

from __future__ import annotations

import heapq
from typing import Final

_STALE_PER_KEY: Final = 4
"""The heap is built again when it has this many entries for each key."""


class DueHeap:
    """Each key has one due time, a Unix time."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        """May hold times that a key has no longer; they are skipped."""

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: str) -> bool:
        return key in self._due

    def put(self, key: str, due: float) -> None:
        """Give the key a due time, in place of its earlier one."""
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        if len(self._heap) > _STALE_PER_KEY * len(self._due) + _STALE_PER_KEY:
            self._heap = [(at, name) for name, at in self._due.items()]
            heapq.heapify(self._heap)

    def remove(self, key: str) -> None:
        """Forget the key; nothing for one that is not there."""
        self._due.pop(key, None)

    def take_due(self, now: float) -> list[str]:
        """Remove and return the keys that are due, soonest first."""
        found: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                found.append(key)
        return found

    def next_due(self) -> float | None:
        """The soonest due time; None without any key."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
