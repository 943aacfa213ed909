"""Threads of other processes, and how often each of several looks for those that none has."""

from __future__ import annotations

import pytest

from gateway.turns.elsewhere import LOOK_S, LOOKS_A_SECOND, Elsewhere, look_interval
from pipeline.domain.clock import ManualClock


@pytest.mark.parametrize("workers", [0, 1, 10])
def test_a_few_workers_look_at_their_own_pace(workers: int) -> None:
    assert look_interval(lambda: workers, "own-1")() == LOOK_S


def test_many_workers_look_rarely_and_not_at_the_same_times() -> None:
    first, second = (look_interval(lambda: 100, seed) for seed in ("own-1", "own-2"))
    waits = [first() for _ in range(200)]
    assert all(2.5 <= wait <= 7.5 for wait in waits)
    assert sum(waits) / len(waits) == pytest.approx(100 / LOOKS_A_SECOND, rel=0.1)
    assert waits[0] != second()


async def test_a_refused_thread_is_left_to_its_owner_for_a_while() -> None:
    clock = ManualClock()
    elsewhere = Elsewhere(clock)
    elsewhere.note("a")
    assert elsewhere.has("a")
    assert not elsewhere.has("b")
    await clock.advance(10.0)
    assert not elsewhere.has("a")
