"""What Prometheus reads of the processes that share a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFigures:
    """The processes as one of them knows them."""

    owners: Mapping[str, int] = field(default_factory=dict)
    """How many are alive, by role."""
    unowned: int | None = None
    """Threads with work and no living process; None while that is not known."""
    beat_age_s: float | None = None
    """Seconds since this process last reported that it is alive; None before its first report."""


class ClusterCollector(Collector):
    """The figures at the moment of the scrape."""

    def __init__(self, read: Callable[[], ClusterFigures]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        found = self._read()
        owners = GaugeMetricFamily(
            "parlour_cluster_owners", "Processes that are alive, by role", labels=("role",)
        )
        for role, number in sorted(found.owners.items()):
            owners.add_metric((role,), number)
        yield owners
        if found.beat_age_s is not None:
            yield GaugeMetricFamily(
                "parlour_cluster_beat_age_seconds",
                "Since this process last reported that it is alive",
                value=found.beat_age_s,
            )
        if found.unowned is not None:
            yield GaugeMetricFamily(
                "parlour_threads_unowned", "Threads with work and no living process", value=found.unowned
            )
