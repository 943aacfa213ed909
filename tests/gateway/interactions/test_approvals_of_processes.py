"""A question whose answer another process accepts: neither a lost signal nor a lost event leaves it open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.interactions.approvals import ALLOW, ApprovalService
from gateway.interactions.question_parts import part_number
from gateway.storage.copies import LOOK_S
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import SentPart
from pipeline.domain.clock import ManualClock
from pipeline.runtime.approvals import ApprovalOutcome
from tests.support.contexts import THREAD, Watched, scope


class Worker:
    """The process whose turn waits: what it sends to the one that shows the question is in `watched`."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.clock = ManualClock()
        self.watched = Watched()
        self.approvals = ApprovalService(
            store=store, clock=self.clock, approval_s=300, send=lambda _: None, shared=True
        )

    async def ask(self) -> ApprovalOutcome:
        return await self.approvals.ask(
            scope(self.watched),
            action_id="act_1",
            action_hash="h",
            tool_name="send",
            summary="to Ada",
            reasoning="May I?",
        )

    async def answered_elsewhere(self) -> None:
        status = await self.store.answer_interaction(
            "tool_act_1", thread=THREAD.encode(), user="ada", choice=ALLOW, now=self.clock.now()
        )
        assert status == "accepted"

    def shown(self) -> list[str]:
        return [event.type for event in self.watched.events]


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    store = MemoryStore()
    await store.open()
    yield Worker(store)
    await store.close()


async def test_an_answer_is_found_in_the_store_without_a_signal(worker: Worker) -> None:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(worker.ask())
        await worker.clock.advance(0)
        await worker.answered_elsewhere()
        await worker.clock.advance(LOOK_S / 2)
        assert not asking.done()
        await worker.clock.advance(LOOK_S / 2)
    assert asking.result() == "allowed"


async def test_a_signal_resumes_the_turn_before_the_next_look(worker: Worker) -> None:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(worker.ask())
        await worker.clock.advance(0)
        await worker.answered_elsewhere()
        worker.approvals.answered("tool_act_1")
        await worker.clock.advance(0)
    assert asking.result() == "allowed"


async def test_a_question_that_is_not_known_to_be_shown_is_sent_once_more(worker: Worker) -> None:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(worker.ask())
        await worker.clock.advance(1.9)
        assert worker.shown() == ["approval_required"]
        await worker.clock.advance(0.2)
        assert worker.shown() == ["approval_required", "approval_required"]
        await worker.clock.advance(60)
        await worker.answered_elsewhere()
        await worker.clock.advance(LOOK_S)
    assert asking.result() == "allowed"
    assert worker.shown() == ["approval_required", "approval_required", "approval_resolved"]


async def test_a_question_that_a_message_shows_is_not_sent_again(worker: Worker) -> None:
    turn = scope(worker.watched)
    lease = await worker.store.acquire_lease(THREAD.encode(), "own_a", ttl_s=600, now=worker.clock.now())
    assert lease is not None
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(worker.ask())
        await worker.clock.advance(0)
        part = SentPart(part=part_number("tool_act_1", 0), native_id="77", final=True)
        await worker.store.record_sent_part(lease, turn.message_id, part)
        await worker.clock.advance(60)
        assert worker.shown() == ["approval_required"]
        await worker.clock.advance(300)
    assert asking.result() == "expired"


async def test_looks_that_the_store_refuses_are_made_again(worker: Worker) -> None:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(worker.ask())
        await worker.clock.advance(0)
        await worker.answered_elsewhere()
        await worker.store.close()
        await worker.clock.advance(3 * LOOK_S)
        assert not asking.done()
        await worker.store.open()
        await worker.clock.advance(LOOK_S)
    assert asking.result() == "allowed"
