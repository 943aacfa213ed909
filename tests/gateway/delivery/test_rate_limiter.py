"""How often the bot may speak: buckets, shares and the platform's own word."""

from __future__ import annotations

import asyncio

import pytest

from adapters.channel import Failure, RateLimits
from gateway.delivery.rate_limiter import Bucket, RateLimiter, account_bucket
from pipeline.domain.clock import ManualClock


def limited(retry_after_s: float | None = None, *, whole_account: bool = False) -> Failure:
    return Failure(
        kind="rate_limit", message="slow down", retry_after_s=retry_after_s, whole_account=whole_account
    )


async def test_a_bucket_lets_its_burst_through_and_then_its_rate() -> None:
    clock = ManualClock()
    bucket = Bucket(clock, per_s=2.0, burst=3)
    for _ in range(3):
        assert bucket.wait_s() == 0.0
        bucket.take()
    assert bucket.wait_s() == pytest.approx(0.5)
    await clock.advance(0.5)
    assert bucket.wait_s() == 0.0


async def test_a_reserve_is_left_for_others_and_never_asks_for_more_than_there_can_be() -> None:
    clock = ManualClock()
    bucket = Bucket(clock, per_s=1.0, burst=2)
    bucket.take()
    assert bucket.wait_s() == 0.0
    assert bucket.wait_s(reserve=1) == pytest.approx(1.0)
    assert bucket.wait_s(reserve=50) == pytest.approx(1.0)


async def test_without_a_rate_only_the_platforms_word_counts() -> None:
    clock = ManualClock()
    bucket = Bucket(clock, per_s=0.0, burst=1)
    for _ in range(100):
        bucket.take()
    assert bucket.wait_s() == 0.0
    bucket.block(7.0)
    bucket.block(3.0)
    assert bucket.wait_s() == pytest.approx(7.0)
    await clock.advance(7.0)
    assert bucket.wait_s() == 0.0
    assert bucket.idle


async def test_a_room_has_a_minutes_allowance_beside_the_chats() -> None:
    clock = ManualClock()
    limits = RateLimits(chat_per_s=1.0, chat_burst=1, room_per_minute=20.0)
    room = RateLimiter.of_chat(clock, limits, account_bucket(clock, limits), private=False)
    private = RateLimiter.of_chat(clock, limits, account_bucket(clock, limits), private=True)
    for _ in range(20):
        room.take()
        private.take()
        await clock.advance(1.0)
    assert private.wait_s() == 0.0
    assert room.wait_s() > 0.0


async def test_chats_of_one_account_share_its_bucket_and_acquire_waits_its_turn() -> None:
    clock = ManualClock()
    limits = RateLimits(account_per_s=1.0)
    account = account_bucket(clock, limits)
    one = RateLimiter.of_chat(clock, limits, account, private=True)
    other = RateLimiter.of_chat(clock, limits, account, private=True)
    await one.acquire()
    waiting: list[str] = []

    async def acquire() -> None:
        await other.acquire()
        waiting.append("went")

    async with asyncio.TaskGroup() as group:
        group.create_task(acquire())
        await clock.advance(0.5)
        assert waiting == []
        await clock.advance(0.5)
    assert waiting == ["went"]


async def test_the_platforms_word_stops_the_chat_or_the_whole_account() -> None:
    clock = ManualClock()
    limits = RateLimits()
    account = account_bucket(clock, limits)
    one = RateLimiter.of_chat(clock, limits, account, private=True)
    other = RateLimiter.of_chat(clock, limits, account, private=True)
    assert one.back_off(limited(3.0), default_s=1.0) == 3.0
    assert one.wait_s() == pytest.approx(3.0)
    assert other.wait_s() == 0.0
    assert other.back_off(limited(whole_account=True), default_s=9.0) == 9.0
    assert one.wait_s() == pytest.approx(9.0)
    assert not one.idle


async def test_a_platform_that_says_come_back_at_once_is_not_called_without_a_pause() -> None:
    clock = ManualClock()
    limits = RateLimits()
    limiter = RateLimiter.of_chat(clock, limits, account_bucket(clock, limits), private=True)
    for said in (0.0, -3.0):
        assert limiter.back_off(limited(said), default_s=1.0) > 0
        assert limiter.wait_s() > 0
        await clock.advance(1)


async def test_what_is_missing_by_rounding_alone_is_not_waited_for() -> None:
    clock = ManualClock()
    bucket = Bucket(clock, per_s=3.0, burst=1)
    for step in range(1, 200):
        bucket.take()
        wait = bucket.wait_s()
        await clock.advance(wait * 0.3 + step / 7_000)
        await clock.advance(bucket.wait_s())
        assert bucket.wait_s() == 0.0
