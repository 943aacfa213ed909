"""One policy for calls to a platform: when an attempt is repeated, and when the chat waits."""

from __future__ import annotations

import asyncio

import pytest

from adapters.channel import Failure, FailureKind
from gateway.delivery.platform_calls import BLOCKED_S, PlatformCalls
from gateway.delivery.rate_limiter import RateLimiter, account_bucket
from pipeline.domain.clock import ManualClock
from tests.support.posting_channel import MemoryPosts, refusal


class _Calls:
    """Calls that fail with `errors`, in order, and then work."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.clock = ManualClock()
        self.made_at: list[float] = []
        channel = MemoryPosts()
        limits = channel.capabilities.rates
        account = account_bucket(self.clock, limits)
        self.limiter = RateLimiter.of_chat(self.clock, limits, account, private=True)
        self.calls = PlatformCalls(channel, self.limiter, self.clock)

    async def call(self) -> str:
        self.made_at.append(self.clock.monotonic())
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.mark.parametrize("kind", ["transient", "rate_limit"])
async def test_the_last_failure_is_returned_without_another_wait(kind: FailureKind) -> None:
    called = _Calls(*(refusal(kind) for _ in range(2)))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(called.calls.run(called.call, attempts=2))
        await called.clock.advance(BLOCKED_S)
    assert isinstance(await running, Failure)
    assert len(called.made_at) == 2


async def test_the_wait_after_a_transient_failure_doubles() -> None:
    called = _Calls(*(refusal("transient") for _ in range(3)))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(called.calls.run(called.call, attempts=4, counted=False))
        for _ in range(10):
            await called.clock.advance(1.0)
    assert await running == "done"
    waits = [later - earlier for earlier, later in zip(called.made_at, called.made_at[1:], strict=False)]
    assert waits == [1.0, 2.0, 4.0]


async def test_a_rate_limit_blocks_the_chat_even_after_a_single_attempt() -> None:
    called = _Calls(refusal("rate_limit"))
    assert isinstance(await called.calls.run(called.call), Failure)
    assert called.limiter.wait_s() == pytest.approx(BLOCKED_S)


async def test_a_final_failure_and_a_forbidden_repeat_end_the_attempts() -> None:
    final = _Calls(refusal("not_found"))
    assert isinstance(await final.calls.run(final.call, attempts=3), Failure)
    forbidden = _Calls(refusal("transient"))
    ended = await forbidden.calls.run(forbidden.call, attempts=3, may_repeat=lambda _failure: False)
    assert isinstance(ended, Failure)
    assert len(final.made_at) == len(forbidden.made_at) == 1
