"""Wrong tokens of an address over all processes: each adds its own, and learns those of the others.

An answer is not delayed for it: what is learned counts at the next attempt from the address.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from gateway.cluster.shared_counts import SharedCounts
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock

_WINDOW_S: Final = 60.0
_MOST_ADDRESSES: Final = 1_000

Start = Callable[[Coroutine[Any, Any, None]], object]
"""Runs work in the background."""


class SharedAttempts:
    """Counts the attempts at the page, the API and the metrics."""

    def __init__(self, counts: SharedCounts, clock: Clock, start: Start) -> None:
        self._counts = counts
        self._clock = clock
        self._start = start
        self._learned = BoundedDict[str, tuple[int, float]](_MOST_ADDRESSES)
        """How many, and when that was learned."""

    def note(self, network: str) -> int:
        """Add an attempt; how many other processes have counted within a minute, as far as is known."""
        self._start(self._share(network))
        number, at = self._learned.get(network) or (0, 0.0)
        return number if self._clock.monotonic() - at < _WINDOW_S else 0

    async def _share(self, network: str) -> None:
        key = f"attempts {network}"
        await self._counts.note(key, window_s=_WINDOW_S)
        number = len(await self._counts.others(key, window_s=_WINDOW_S))
        self._learned[network] = number, self._clock.monotonic()
