"""Our counters and histograms show a scrape the lines that Prometheus' own would."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from gateway.runtime.measured import Counted, Spread
from pipeline.domain.clock import ManualClock

_BOUNDS = (0.001, 0.25, 1, 10)


def _lines(registry: CollectorRegistry) -> list[str]:
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]


def test_a_counter_has_the_lines_of_prometheus_own() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counted = Counted("seen_total", "What was seen", ("kind", "result"), ManualClock())
    ours.register(counted)
    known = Counter("seen_total", "What was seen", ("kind", "result"), registry=theirs)
    assert _lines(ours) == _lines(theirs)
    for kind, result, amount in (("a", "done", 1), ('b"\\\n', "", 2.5), ("a", "done", 0)):
        counted.sums[kind, result] += amount
        known.labels(kind, result).inc(amount)
    assert _lines(ours) == _lines(theirs)


@pytest.mark.parametrize("values", [(), (0.0, 0.001, 0.25, 0.2500001, 3, 10, 11), (-1, 5e9, float("inf"))])
def test_a_histogram_has_the_lines_of_prometheus_own(values: tuple[float, ...]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    spread = Spread("took_seconds", "How long it took", _BOUNDS, ManualClock())
    ours.register(spread)
    known = Histogram("took_seconds", "How long it took", buckets=_BOUNDS, registry=theirs)
    for value in values:
        spread.observe(value)
        known.observe(value)
    assert _lines(ours) == _lines(theirs)


def test_the_time_of_the_first_value_is_shown() -> None:
    clock, registry = ManualClock(start=1_000.0), CollectorRegistry()
    counted = Counted("seen_total", "What was seen", ("kind",), clock)
    registry.register(counted)
    clock.step_wall(5)
    counted.sums["a"] += 1
    clock.step_wall(5)
    counted.sums["a"] += 1
    assert 'seen_created{kind="a"} 1005.0' in generate_latest(registry).decode()
