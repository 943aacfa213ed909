"""A platform that takes every socket away again is not asked for new ones as fast as it answers."""

from __future__ import annotations

import asyncio

import pytest

from adapters.channel import Failure
from adapters.slack.failures import CallFailed
from adapters.slack.socket import pause_before
from pipeline.domain.clock import ManualClock
from tests.adapters.slack.harness import running
from tests.support.platforms.slack import FakeSlack


@pytest.mark.parametrize("reason", ["too_many_websockets", "warning"])
async def test_sockets_that_do_not_last_are_opened_slower_and_slower(reason: str) -> None:
    clock = ManualClock()
    async with FakeSlack() as slack, asyncio.TaskGroup() as tasks:

        async def take_away() -> None:
            seen = 0
            while True:
                await slack.until(lambda: slack.delivery.opened > seen and bool(slack.delivery.sockets))  # noqa: B023 - used at once
                seen = slack.delivery.opened
                await slack.delivery.refresh(reason=reason)

        async with running(slack, clock=clock):
            hostile = tasks.create_task(take_away())
            with pytest.raises(TimeoutError):
                await slack.until(lambda: slack.delivery.opened > 10, timeout_s=0.5)
            before = slack.delivery.opened
            async with asyncio.timeout(60):
                while slack.delivery.opened == before:
                    await clock.advance(1.0)
                    await asyncio.sleep(0.01)
            hostile.cancel()


def test_a_wait_that_slack_asks_for_is_obeyed_before_the_next_socket() -> None:
    limited = CallFailed(Failure(kind="rate_limit", message="wait", retry_after_s=40.0))
    assert pause_before(limited) == 40.0
    assert pause_before(CallFailed(Failure(kind="transient", message="broken"))) == 1.0
