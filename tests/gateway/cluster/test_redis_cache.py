"""The cache of threads in a real Valkey: what it keeps, and what it says while the server is away.

Covers: gateway/cluster/redis_cache.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from redis.asyncio import Redis

from gateway.cluster.redis_cache import MOST_BYTES, RedisThreadCache
from gateway.cluster.thread_cache import CacheResult
from pipeline.domain.clock import ManualClock
from tests.support.valkey import Valkey

THREAD = "web:page:c_1"


class Counted:
    """What the cache was asked for."""

    def __init__(self) -> None:
        self.results: list[CacheResult] = []

    def add(self, result: CacheResult) -> None:
        self.results.append(result)


async def test_an_entry_is_taken_once_by_the_holder_of_the_next_lease(tmp_path: Path) -> None:
    counted = Counted()
    async with Valkey(tmp_path) as server:
        cache = RedisThreadCache(server.url, ttl_s=60, clock=ManualClock(), count=counted.add)
        await cache.put(THREAD, 7, "an\nentry")
        assert await cache.take("web:page:c_2", 7) is None
        assert await cache.take(THREAD, 7) == "an\nentry"
        assert await cache.take(THREAD, 7) is None
        await cache.close()
    assert counted.results == ["miss", "hit", "miss"]


@pytest.mark.parametrize("fence", [6, 8])
async def test_the_entry_of_another_lease_is_not_believed_and_is_gone(tmp_path: Path, fence: int) -> None:
    async with Valkey(tmp_path) as server:
        cache = RedisThreadCache(server.url, ttl_s=60, clock=ManualClock())
        await cache.put(THREAD, 7, "stale")
        assert await cache.take(THREAD, fence) is None
        assert await cache.take(THREAD, 7) is None
        await cache.close()


async def test_an_entry_ends_by_itself_and_a_long_one_is_not_kept(tmp_path: Path) -> None:
    async with Valkey(tmp_path) as server, Redis.from_url(server.url) as client:
        cache = RedisThreadCache(server.url, ttl_s=60, clock=ManualClock())
        await cache.put(THREAD, 1, "x")
        await cache.put("web:page:c_2", 1, "x" * (MOST_BYTES + 1))
        (key,) = await client.keys("*")
        assert 0 < await client.ttl(key) <= 60
        await client.flushall()
        assert await cache.take(THREAD, 1) is None
        await cache.close()


async def test_a_server_that_is_down_is_left_alone_for_two_seconds(tmp_path: Path) -> None:
    counted, clock = Counted(), ManualClock()
    server = Valkey(tmp_path)
    cache = RedisThreadCache(server.url, ttl_s=60, clock=clock, count=counted.add)
    assert await cache.take(THREAD, 1) is None
    async with server:
        assert await cache.take(THREAD, 1) is None
        await cache.put(THREAD, 1, "not tried")
        await clock.advance(2.0)
        assert await cache.take(THREAD, 1) is None
        await cache.put(THREAD, 2, "tried")
        assert await cache.take(THREAD, 2) == "tried"
        await cache.close()
    assert counted.results == ["failed", "failed", "miss", "hit"]


async def test_a_server_that_hangs_costs_a_quarter_of_a_second_and_mixes_nothing_up(tmp_path: Path) -> None:
    counted, clock = Counted(), ManualClock()
    async with Valkey(tmp_path) as server:
        cache = RedisThreadCache(server.url, ttl_s=60, clock=clock, count=counted.add)
        await cache.put(THREAD, 1, "one")
        await cache.put("web:page:c_2", 1, "two")
        server.freeze()
        async with asyncio.TaskGroup() as group:
            taking = group.create_task(cache.take(THREAD, 1))
            while not taking.done():
                await clock.advance(0.25)
        assert taking.result() is None
        server.thaw()
        await clock.advance(2.0)
        assert await cache.take("web:page:c_2", 1) == "two"
        await cache.close()
    assert counted.results == ["failed", "hit"]
