"""Asking a turn's author: one durable question for one action, however often and late it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.interactions.approvals import ALLOW, DENY, ApprovalService
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ApprovalRequired, ApprovalResolved, PipelineEvent
from pipeline.runtime.approvals import ApprovalOutcome
from pipeline.runtime.scope import TurnScope
from tests.support.contexts import THREAD, Watched, scope

THREAD_TEXT = THREAD.encode()


class ApprovalHarness:
    """Approvals over a store, and the events of the turns that ask."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.clock = ManualClock()
        self.approvals = ApprovalService(
            store=store,
            clock=self.clock,
            approval_s=300,
            send=lambda answer: self.approvals.answered(answer.interaction_id),
        )
        self.watched = Watched()

    async def ask(self, action_hash: str = "h", turn: TurnScope | None = None) -> ApprovalOutcome:
        return await self.approvals.ask(
            turn or scope(self.watched),
            action_id="act_1",
            action_hash=action_hash,
            tool_name="send",
            summary="to Ada",
            reasoning="May I?",
        )

    async def answer(self, choice: str, user: str = "ada") -> str:
        status = await self.store.answer_interaction(
            "tool_act_1", thread=THREAD_TEXT, user=user, choice=choice, now=self.clock.now()
        )
        if status == "accepted":
            self.approvals.answered("tool_act_1")
        return status

    def shown(self) -> list[str]:
        return [event.type for event in self.watched.events]


@pytest.fixture
async def harness() -> AsyncIterator[ApprovalHarness]:
    store = MemoryStore()
    await store.open()
    yield ApprovalHarness(store)
    await store.close()


@pytest.mark.parametrize(("choice", "outcome"), [(ALLOW, "allowed"), (DENY, "refused")])
async def test_an_answer_that_is_quicker_than_the_question_is_heard(
    harness: ApprovalHarness, choice: str, outcome: str
) -> None:
    async def press_at_once(event: PipelineEvent) -> None:
        await harness.watched.send(event)
        if isinstance(event, ApprovalRequired):
            assert await harness.answer(choice) == "accepted"

    assert await harness.ask(turn=scope(send=press_at_once)) == outcome
    assert harness.shown() == ["approval_required", "approval_resolved"]


async def test_the_question_is_the_authors_and_says_how_long_it_is_open(harness: ApprovalHarness) -> None:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(harness.ask())
        await harness.clock.advance(0)
        (question,) = await harness.store.pending_interactions(THREAD_TEXT, now=harness.clock.now())
        assert (question.kind, question.allowed_users, question.action_hash) == ("tool", ("ada",), "h")
        assert await harness.answer(ALLOW, user="eve") == "not_allowed"
        await harness.clock.advance(299)
        assert not asking.done()
        await harness.clock.advance(1)
    assert asking.result() == "expired"
    (asked, resolved) = harness.watched.events
    assert isinstance(asked, ApprovalRequired)
    assert (asked.timeout_s, asked.reasoning, asked.paused) == (300, "May I?", False)
    assert isinstance(resolved, ApprovalResolved)
    assert resolved.choice == "expired"
    assert await harness.answer(ALLOW) == "expired"


async def test_a_turn_that_asks_again_continues_with_its_question(harness: ApprovalHarness) -> None:
    await _asked_and_cut_off(harness, 100)
    async with asyncio.TaskGroup() as group:
        second = group.create_task(harness.ask())
        await harness.clock.advance(199)
        assert not second.done()
        await harness.clock.advance(1)
    assert second.result() == "expired"
    assert [event.timeout_s for event in harness.watched.events if isinstance(event, ApprovalRequired)] == [
        300,
        200,
    ]


async def test_an_answer_that_came_while_no_one_waited_is_found_without_asking(
    harness: ApprovalHarness,
) -> None:
    await _asked_and_cut_off(harness, 1)
    assert await harness.answer(ALLOW) == "accepted"
    assert await harness.ask() == "allowed"
    assert harness.shown() == ["approval_required", "approval_resolved"]


async def test_an_answer_for_another_action_is_none(harness: ApprovalHarness) -> None:
    async def press_at_once(event: PipelineEvent) -> None:
        if isinstance(event, ApprovalRequired):
            await harness.answer(ALLOW)

    assert await harness.ask("h", scope(send=press_at_once)) == "allowed"
    assert await harness.ask("other") == "refused"
    assert harness.shown() == []


async def test_a_question_that_is_withdrawn_is_a_no_for_good(harness: ApprovalHarness) -> None:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(harness.ask())
        await harness.clock.advance(0)
        await harness.approvals.withdraw(THREAD_TEXT)
    assert asking.result() == "refused"
    assert await harness.answer(ALLOW) == "already_answered"


async def test_a_clock_that_was_set_back_makes_no_one_wait_longer(harness: ApprovalHarness) -> None:
    await _asked_and_cut_off(harness, 1)
    harness.clock.step_wall(-10_000)
    async with asyncio.TaskGroup() as group:
        second = group.create_task(harness.ask())
        await harness.clock.advance(300)
    assert second.result() == "expired"


async def _asked_and_cut_off(harness: ApprovalHarness, seconds: float) -> None:
    """Ask, and be cancelled after `seconds`, as by a shutdown."""
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(harness.ask())
        await harness.clock.advance(seconds)
        asking.cancel()
