"""Threads that other processes have, and how often this one of several looks for those that none has."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock

LOOK_S: Final = 0.5
"""How often a process among several looks for threads without a live owner at most, in seconds."""
LOOKS_A_SECOND: Final = 20.0
"""All workers together look so often: each look reads every unfinished entry."""
_ELSEWHERE_S: Final = 10.0
"""For so long a thread counts as that of another process, which is woken too, and whose rest is claimed.
Without this, each message would cost a refused lease."""
_MOST_THREADS: Final = 20_000


class Elsewhere:
    """The threads whose leases were refused a short time ago."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = BoundedDict[str, float](_MOST_THREADS)

    def note(self, thread: str) -> None:
        """Another process has the lease of `thread`."""
        self._until[thread] = self._clock.monotonic() + _ELSEWHERE_S

    def has(self, thread: str) -> bool:
        """Whether the thread is probably still that of another process."""
        until = self._until.get(thread)
        return until is not None and until > self._clock.monotonic()


def look_interval(workers: Callable[[], int], seed: str = "") -> Callable[[], float]:
    """Seconds until the next look of one of so many workers. Where many look, each varies the time, so that
    their looks do not come together."""
    chance = random.Random(seed)  # noqa: S311 - it spreads looks, and keeps no secret

    def seconds() -> float:
        wanted = workers() / LOOKS_A_SECOND
        return LOOK_S if wanted <= LOOK_S else wanted * chance.uniform(0.5, 1.5)

    return seconds
