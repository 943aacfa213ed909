"""Counts in a real Valkey while it is away, hangs and comes back.

What every implementation does is in tests/contracts/test_shared_counts.py.
"""

from __future__ import annotations

from pathlib import Path

from redis.asyncio import Redis

from gateway.cluster.redis_counts import RedisCounts
from pipeline.domain.clock import ManualClock
from tests.support.valkey import Valkey

WINDOW_S = 60.0


async def test_while_the_server_is_away_each_counts_for_itself_and_says_so(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Valkey(tmp_path) as server:
        counts, other = (RedisCounts(server.url, clock=clock) for _ in range(2))
        await other.note("a", window_s=WINDOW_S)
        assert len(await counts.others("a", window_s=WINDOW_S)) == 1
        await server.kill()
        assert await counts.others("a", window_s=WINDOW_S) == ()
        assert counts.trouble == "redis fails"
        # It is not asked again at once, and then it is.
        await counts.note("a", window_s=WINDOW_S)
        await server.start()
        assert await counts.others("a", window_s=WINDOW_S) == ()
        await clock.advance(2.0)
        await counts.note("a", window_s=WINDOW_S)
        assert counts.trouble == ""
        # The other one finds its connection broken, and makes a new one when it tries again.
        assert await other.others("a", window_s=WINDOW_S) == ()
        await clock.advance(2.0)
        assert len(await other.others("a", window_s=WINDOW_S)) == 1
        for one in (counts, other):
            await one.close()


async def test_a_failure_after_which_nothing_was_counted_is_not_reported_for_ever(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Valkey(tmp_path) as server:
        counts = RedisCounts(server.url, clock=clock)
        await server.kill()
        await counts.note("a", window_s=WINDOW_S)
        assert counts.trouble
        await clock.advance(10.0)
        assert counts.trouble == ""
        await counts.close()


async def test_no_name_is_on_the_server_and_everything_ends_by_itself(tmp_path: Path) -> None:
    async with Valkey(tmp_path) as server, Redis.from_url(server.url, decode_responses=True) as client:
        counts = RedisCounts(server.url, clock=ManualClock())
        await counts.note("messages telegram main 4711", window_s=WINDOW_S)
        (key,) = await client.keys("*")
        assert str(key).startswith("parlour:count:")
        assert "4711" not in str(key)
        assert 0 < await client.ttl(key) <= WINDOW_S
        await counts.close()
