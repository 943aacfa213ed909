"""The contract of counts that processes share, for the one in memory and for the one in a real Valkey."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.cluster.redis_counts import RedisCounts
from gateway.cluster.shared_counts import MOST_KEPT, LocalCounts, SharedCounts
from pipeline.domain.clock import ManualClock
from tests.support.valkey import Valkey

WINDOW_S = 600.0

Pair = tuple[SharedCounts, SharedCounts]


@pytest.fixture(params=["memory", "redis"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """The counts as two processes see them."""
    if request.param == "memory":
        memory = LocalCounts(ManualClock())
        yield memory, memory.beside()
        return
    async with Valkey(tmp_path) as server:
        redis = RedisCounts(server.url, clock=ManualClock()), RedisCounts(server.url, clock=ManualClock())
        yield redis
        for one in redis:
            await one.close()


async def test_each_process_sees_what_the_others_have_counted(pair: Pair) -> None:
    first, second = pair
    for _ in range(3):
        await first.note("a", window_s=WINDOW_S)
    await second.note("a", window_s=WINDOW_S)
    assert len(await second.others("a", window_s=WINDOW_S)) == 3
    assert len(await first.others("a", window_s=WINDOW_S)) == 1
    assert await first.others("b", window_s=WINDOW_S) == ()
    assert first.trouble == ""


async def test_ages_are_in_seconds_newest_first(pair: Pair) -> None:
    first, second = pair
    for _ in range(5):
        await first.note("a", window_s=WINDOW_S)
    ages = await second.others("a", window_s=WINDOW_S)
    assert list(ages) == sorted(ages)
    assert all(0 <= age < WINDOW_S for age in ages)


async def test_only_the_newest_are_kept(pair: Pair) -> None:
    first, second = pair
    for _ in range(MOST_KEPT + 5):
        await first.note("a", window_s=WINDOW_S)
    assert len(await second.others("a", window_s=WINDOW_S)) == MOST_KEPT


async def test_what_is_older_than_the_window_does_not_count(pair: Pair) -> None:
    first, second = pair
    await first.note("a", window_s=WINDOW_S)
    # Each time is measured in milliseconds at least.
    assert await second.others("a", window_s=0.0) == ()


async def test_an_event_is_counted_for_any_text_as_its_key(pair: Pair) -> None:
    first, second = pair
    for key in ("", "ü \n", "x" * 10_000):
        await first.note(key, window_s=WINDOW_S)
        assert len(await second.others(key, window_s=WINDOW_S)) == 1
