"""Budgets of a day: whose they are, when they end, and that nothing makes them forget."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from gateway.access.token_budgets import DailyBudgets
from gateway.config.agent import BudgetSettings
from gateway.runtime.metrics import Telemetry
from gateway.runtime.tasks import Supervisor
from gateway.storage.memory import MemoryStore
from gateway.storage.sqlite import SqliteStore
from gateway.storage.usage import Spent
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey, own_person
from pipeline.domain.messages import Author
from tests.support.contexts import scope

NOON = 1_699_963_200.0
"""14 November 2023, 12:00 UTC."""
ROOM = ThreadKey(channel="slack", account="work", chat="room")


async def budgets(clock: ManualClock | None = None, **limits: Any) -> DailyBudgets:
    store = MemoryStore()
    await store.open()
    return DailyBudgets(
        usage=store.usage, clock=clock or ManualClock(NOON), settings=BudgetSettings(**limits)
    )


async def test_without_limits_everything_is_allowed_and_only_the_persons_use_is_counted() -> None:
    store = MemoryStore()
    await store.open()
    free = DailyBudgets(usage=store.usage, clock=ManualClock(NOON), settings=BudgetSettings())
    await free.spent(scope(), tokens=10**9, cost=10**6)
    assert (await free.allowance(scope())).model == "full"
    assert (await free.used_by(scope().thread, scope().author.id)).today.tokens == 10**9
    assert await store.usage.of("2023-11-14", ["everybody"]) == {"everybody": Spent()}


async def test_calls_are_counted_for_the_metrics_also_without_limits() -> None:
    telemetry = Telemetry(ManualClock(NOON))
    free = DailyBudgets(
        usage=MemoryStore().usage,
        clock=ManualClock(NOON),
        settings=BudgetSettings(),
        on_spent=telemetry.model_called,
    )
    for _ in range(2):
        await free.spent(scope(thread=ROOM), tokens=120, cost=0.25)

    lines = telemetry.exposition().decode().splitlines()
    assert 'parlour_llm_tokens_total{channel="slack"} 240.0' in lines
    assert 'parlour_llm_cost_dollars_total{channel="slack"} 0.5' in lines


async def test_a_persons_budget_is_the_persons_in_every_chat_and_no_one_elses() -> None:
    mine = await budgets(person_tokens=100)
    in_room = scope(thread=ROOM, private=False)
    await mine.spent(in_room, tokens=100, cost=0)
    refused = await mine.allowance(scope(thread=ThreadKey(channel="slack", account="work", chat="dm")))
    assert refused.model == "none"
    assert refused.words == "Your budget for today is used up. It begins again at midnight UTC, in 12 hours."
    others = scope(thread=ROOM, private=False, author=Author(id="grace"))
    assert (await mine.allowance(others)).model == "full"
    elsewhere = scope(thread=ThreadKey(channel="slack", account="home", chat="dm"))
    assert (await mine.allowance(elsewhere)).model == "full"


async def test_a_chats_budget_is_everybodys_in_it() -> None:
    ours = await budgets(chat_tokens=100)
    await ours.spent(scope(thread=ROOM), tokens=100, cost=0)
    refused = await ours.allowance(scope(thread=ROOM, author=Author(id="grace")))
    assert refused.words.startswith("This chat's budget")
    assert (await ours.allowance(scope())).model == "full"


@pytest.mark.parametrize(("limits", "tokens", "cost"), [({"tokens": 50}, 50, 0.0), ({"cost": 0.5}, 3, 0.5)])
async def test_everybodys_budget_ends_for_everybody(limits: Any, tokens: int, cost: float) -> None:
    bounded = await budgets(**limits)
    await bounded.spent(scope(), tokens=tokens, cost=cost)
    assert (await bounded.allowance(scope(thread=ROOM, author=Author(id="grace")))).model == "none"


async def test_the_cheaper_model_takes_over_where_there_is_one() -> None:
    bounded = await budgets(person_tokens=100, cheaper_model="openai/small", cheaper_from=0.8)
    await bounded.spent(scope(), tokens=79, cost=0)
    assert (await bounded.allowance(scope())).model == "full"
    await bounded.spent(scope(), tokens=1, cost=0)
    assert (await bounded.allowance(scope())).model == "cheaper"
    without = await budgets(person_tokens=100)
    await without.spent(scope(), tokens=99, cost=0)
    assert (await without.allowance(scope())).model == "full"


async def test_a_new_day_begins_at_midnight_utc_and_a_new_month_forgets_the_old_one() -> None:
    clock = ManualClock(NOON + 12 * 3600 - 90)
    store = MemoryStore()
    await store.open()
    bounded = DailyBudgets(usage=store.usage, clock=clock, settings=BudgetSettings(person_tokens=1))
    await bounded.spent(scope(), tokens=5, cost=0)
    assert (await bounded.allowance(scope())).words.endswith("in 2 minutes.")
    await clock.advance(90)
    assert (await bounded.allowance(scope())).model == "full"
    assert (await store.usage.of("2023-11-14", ["everybody"]))["everybody"].tokens == 5
    await clock.advance(16 * 86_400)
    assert (await bounded.allowance(scope())).model == "full"
    assert await store.usage.of("2023-11-14", ["everybody"]) == {"everybody": Spent()}


async def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    for spent_before in (False, True):
        store = SqliteStore(tmp_path / "store.sqlite3", synchronous="NORMAL")
        await store.open()
        bounded = DailyBudgets(
            usage=store.usage, clock=ManualClock(NOON), settings=BudgetSettings(person_tokens=10)
        )
        assert (await bounded.allowance(scope())).model == ("none" if spent_before else "full")
        await bounded.spent(scope(), tokens=10, cost=0)
        await store.close()


async def test_what_is_used_while_sums_are_moved_counts_for_the_person_that_there_is_afterwards() -> None:
    store, person = MemoryStore(), ["before"]
    await store.open()
    bounded = DailyBudgets(
        usage=store.usage,
        clock=ManualClock(NOON),
        settings=BudgetSettings(person_tokens=10),
        person_of=lambda _thread, _user: person[0],
    )
    await bounded.spent(scope(), tokens=4, cost=0)
    async with asyncio.TaskGroup() as group, bounded.moving():
        group.create_task(bounded.spent(scope(), tokens=5, cost=0))
        await asyncio.sleep(0)
        await store.usage.add(bounded.today(), ["after"], Spent(tokens=5))
        person[0] = "after"
    assert (await bounded.allowance(scope())).model == "none"
    sums = await store.usage.of("2023-11-14", ["before", "after"])
    assert (sums["before"].tokens, sums["after"].tokens) == (4, 10)


async def test_what_another_process_has_spent_counts_from_the_next_call_on() -> None:
    store = MemoryStore()
    await store.open()
    here, there = [
        DailyBudgets(usage=store.usage, clock=ManualClock(NOON), settings=BudgetSettings(person_tokens=10))
        for _ in range(2)
    ]
    assert (await here.allowance(scope())).model == "full"
    await there.spent(scope(), tokens=9, cost=0)
    await here.spent(scope(), tokens=1, cost=0)
    assert (await here.allowance(scope())).model == "none"


async def test_calls_at_once_are_all_counted() -> None:
    bounded = await budgets(tokens=100)
    await asyncio.gather(
        *(bounded.spent(scope(), tokens=1, cost=0) for _ in range(99)),
        *(bounded.allowance(scope(author=Author(id=str(n)))) for n in range(20)),
    )
    assert (await bounded.allowance(scope())).model == "full"
    await bounded.spent(scope(), tokens=1, cost=0)
    assert (await bounded.allowance(scope())).model == "none"


async def test_what_a_person_has_used_is_counted_by_day_and_month_with_and_without_limits() -> None:
    for limits in ({}, {"person_tokens": 1000}):
        clock = ManualClock(NOON - 14 * 86_400)
        mine = await budgets(clock, **limits)
        for _ in range(3):  # 31 October, 1 November, 14 November
            await mine.spent(scope(), tokens=100, cost=0.5)
            await mine.spent(scope(author=Author(id="grace")), tokens=7, cost=0)
            await clock.advance(86_400 if clock.now() < NOON - 13 * 86_400 else 13 * 86_400)
        await clock.advance(NOON - clock.now())
        used = await mine.used_by(scope().thread, scope().author.id)
        assert (used.today, used.month) == (Spent(tokens=100, cost=0.5), Spent(tokens=200, cost=1.0))
        assert used.limit == limits.get("person_tokens", 0)


async def test_use_without_limits_is_written_some_seconds_later_and_once() -> None:
    store, clock, tasks = MemoryStore(), ManualClock(NOON), Supervisor()
    await store.open()
    begun: list[str] = []

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        begun.append("one")
        tasks.spawn(work, name="use")

    free = DailyBudgets(usage=store.usage, clock=clock, settings=BudgetSettings(), spawn=spawn)
    person = own_person(scope().thread, scope().author.id)
    for _ in range(3):
        await free.spent(scope(), tokens=5, cost=0)
    assert (await store.usage.since("2023-11-14", person)).tokens == 0
    await clock.advance(10)
    await tasks.wait_idle()
    assert len(begun) == 1
    assert (await store.usage.since("2023-11-14", person)).tokens == 15


async def test_what_another_process_has_spent_counts_before_the_next_turn() -> None:
    store, clock = MemoryStore(), ManualClock(NOON)
    await store.open()
    first, second = (
        DailyBudgets(usage=store.usage, clock=clock, settings=BudgetSettings(person_tokens=100), shared=True)
        for _ in range(2)
    )
    assert (await second.allowance(scope())).model == "full"
    await first.spent(scope(), tokens=60, cost=0)
    assert (await second.allowance(scope())).model == "full"
    await second.spent(scope(), tokens=40, cost=0)
    for one in (first, second):
        assert (await one.allowance(scope())).model == "none"
