"""Queues of the chats: order within a chat, previews that give way, chats that do not wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.channel import RateLimits
from adapters.withheld import RequestWithheld, check_before_request
from gateway.delivery.chat_queue import ChatQueue, ChatQueues
from gateway.delivery.platform_calls import call_with_timeout
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import AccountKey
from tests.support.posting_channel import MemoryPosts


@asynccontextmanager
async def chat(rates: RateLimits | None = None) -> AsyncIterator[tuple[ChatQueue, ManualClock, list[str]]]:
    clock, supervisor = ManualClock(), Supervisor()
    channel = MemoryPosts(rates=rates)
    queue = ChatQueues(clock, supervisor).queue_for(channel, channel.thread(), private=True)
    try:
        yield queue, clock, []
    finally:
        await supervisor.close()


async def test_what_is_submitted_runs_one_after_the_other_and_a_failure_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with chat() as (queue, clock, done):

        async def slow() -> None:
            await clock.sleep(5)
            done.append("slow")

        async def broken() -> None:
            done.append("broken")
            raise RuntimeError("it broke")

        async def quick() -> None:
            done.append("quick")

        for work in (slow, broken, quick):
            queue.submit(work)
        await clock.advance(1)
        assert done == []
        await clock.advance(5)
        assert done == ["slow", "broken", "quick"]
        assert "it broke" in caplog.text
        assert queue.idle


async def test_the_newest_offer_wins_and_what_must_go_comes_first() -> None:
    async with chat() as (queue, clock, done):

        def show(word: str) -> None:
            async def shown() -> None:
                done.append(word)

            queue.schedule_preview("m1", shown, not_before=clock.monotonic() + 1)

        async def reply() -> None:
            done.append("reply")

        show("T")
        show("The answer")
        queue.submit(reply)
        await clock.advance(0.5)
        assert done == ["reply"]
        await clock.advance(1)
        assert done == ["reply", "The answer"]


async def test_a_withdrawn_offer_is_never_shown_and_the_queue_becomes_idle() -> None:
    async with chat() as (queue, clock, done):

        async def shown() -> None:
            done.append("shown")

        queue.schedule_preview("m1", shown, not_before=clock.monotonic() + 1)
        await clock.advance(0)
        queue.cancel_preview("m1")
        await clock.advance(5)
        assert done == []
        assert queue.idle


async def test_previews_never_spend_the_call_that_the_reply_needs() -> None:
    async with chat(RateLimits(chat_per_s=1.0, chat_burst=2)) as (queue, clock, done):

        def show() -> None:
            async def shown() -> None:
                done.append("preview")

            queue.schedule_preview("m1", shown, not_before=0.0)

        for _ in range(5):
            show()
            await clock.advance(0)
        assert done == ["preview"]
        assert queue.limiter.wait_s() == 0.0, "a reply could go at once"


async def test_one_chat_does_not_wait_for_another() -> None:
    clock, supervisor = ManualClock(), Supervisor()
    channel = MemoryPosts()
    queues = ChatQueues(clock, supervisor)
    stuck, free = (
        queues.queue_for(channel, channel.thread(name), private=True) for name in ("stuck", "free")
    )
    done = asyncio.Event()
    stuck.submit(asyncio.Event().wait)  # type: ignore[arg-type]  # it never returns, whatever it would return

    async def work() -> None:
        done.set()

    free.submit(work)
    async with asyncio.timeout(30):
        await done.wait()
    assert queues.queue_for(channel, channel.thread("free"), private=True) is free
    await supervisor.close()


async def test_idle_queues_are_forgotten_before_they_are_too_many() -> None:
    clock, supervisor = ManualClock(), Supervisor()
    channel = MemoryPosts()
    queues = ChatQueues(clock, supervisor)
    busy = queues.queue_for(channel, channel.thread("busy"), private=True)
    busy.submit(asyncio.Event().wait)  # type: ignore[arg-type]  # as above
    for number in range(2_500):
        queues.queue_for(channel, channel.thread(str(number)), private=True)
    assert len(queues) <= 2_001
    assert queues.queue_for(channel, channel.thread("busy"), private=True) is busy
    await supervisor.close()


async def test_the_requests_of_a_chats_work_are_checked_for_its_account() -> None:
    clock, supervisor, channel = ManualClock(), Supervisor(), MemoryPosts()
    checked: list[AccountKey] = []

    def check(account: AccountKey) -> None:
        checked.append(account)
        raise StorageError("another process may send instead")

    queue = ChatQueues(clock, supervisor, check).queue_for(channel, channel.thread(), private=True)
    withheld: list[bool] = []

    async def request() -> None:
        with pytest.raises(RequestWithheld, match="another process"):
            check_before_request()
        withheld.append(True)

    queue.submit(lambda: call_with_timeout(request(), clock))
    queue.schedule_preview("m", request, not_before=0.0)
    await clock.advance(1)
    assert withheld == [True, True]
    assert checked == [channel.thread().account_key] * 2
    check_before_request()  # outside of the queue
    await supervisor.close()
