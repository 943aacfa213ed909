"""Counters and histograms that are cheap to change, since each turn changes a dozen of them.

Prometheus' own take a lock for each change and look for a bucket one by one. These are changed on the event
loop only, and are read by the same collector protocol, so that a scrape shows the same lines.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from pipeline.domain.clock import Clock


class Counted(Collector):
    """Sums by the value of a label, or by a tuple of values for several labels. `name` ends in `_total`."""

    def __init__(self, name: str, text: str, labels: Sequence[str], clock: Clock) -> None:
        self._name = name.removesuffix("_total")
        self._text = text
        self._labels = tuple(labels)
        self.sums = _Sums(clock)
        """What is added to a sum is not negative."""

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for key, total in self.sums.items():
            values = (key,) if isinstance(key, str) else key
            family.add_metric(values, total, created=self.sums.created[key])
        yield family


Key = str | tuple[str, ...]


class _Sums(dict[Key, float]):
    """Sums that begin at 0, each with the Unix time at which it began."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.created: dict[Key, float] = {}

    def __missing__(self, key: Key) -> float:
        self.created[key] = self._clock.now()
        return 0.0


class Spread(Collector):
    """How many values are at most as large as each bound, and their sum."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], clock: Clock) -> None:
        self._name = name
        self._text = text
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        self._created = clock.now()

    def observe(self, value: float) -> None:
        """Count `value`."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._text)
        bounds = map(floatToGoString, (*self._bounds, math.inf))
        family.add_metric((), list(zip(bounds, accumulate(self._counts), strict=True)), self._sum)
        family.add_sample(f"{self._name}_created", {}, self._created)
        yield family
