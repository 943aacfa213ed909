"""The limits of an open account over several processes, each with separate counts in memory."""

from __future__ import annotations

import pytest

from gateway.access.daily_quota import SharedDailyQuota
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError

DAY_S = 86_400.0


@pytest.fixture
async def store() -> MemoryStore:
    made = MemoryStore()
    await made.open()
    return made


def process(
    store: MemoryStore, clock: ManualClock, *, account: str = "main", messages: int = 3, people: int = 2
) -> SharedDailyQuota:
    return SharedDailyQuota(clock, store.usage, ("telegram", account), messages=messages, people=people)


async def test_a_person_has_one_number_of_messages_in_all_processes_together(store: MemoryStore) -> None:
    clock = ManualClock()
    first, second = process(store, clock), process(store, clock)
    for number, one in enumerate((first, second, first)):
        assert await one.admit("ann", event=f"e{number}") is None
    for one in (first, second):
        refused = await one.admit("ann", event="e9")
        assert refused is not None
        assert refused.reason == "3 messages today"
    assert await process(store, clock, account="other").admit("ann", event="e1") is None
    await clock.advance(DAY_S)
    assert await second.admit("ann", event="e10") is None


async def test_a_message_that_comes_twice_counts_once_and_a_free_item_never(store: MemoryStore) -> None:
    clock = ManualClock()
    one = process(store, clock, messages=2)
    for _ in range(5):
        assert await one.admit("ann", event="e1") is None
        assert await one.admit("ann") is None
    assert await one.admit("ann", event="e2") is None
    assert await process(store, clock, messages=2).admit("ann", event="e3") is not None


async def test_the_places_of_a_day_are_those_of_all_processes(store: MemoryStore) -> None:
    clock = ManualClock()
    first, second = process(store, clock), process(store, clock)
    assert await first.admit("ann", event="e1") is None
    assert await second.admit("ben", event="e2") is None
    for one in (first, second):
        for event in ("e3", "e4"):
            refused = await one.admit("cleo", event=event)
            assert refused is not None
            assert refused.reason == "2 people today"
    assert await first.admit("ben", event="e5") is None


async def test_without_the_store_no_one_is_admitted(store: MemoryStore) -> None:
    one = process(store, ManualClock())
    await store.close()
    with pytest.raises(StorageError):
        await one.admit("ann", event="e1")


async def test_the_store_holds_no_names_of_people(store: MemoryStore) -> None:
    clock = ManualClock()
    await process(store, clock).admit("ann", event="e1")
    kept = repr(vars(store.usage))
    assert "open:" in kept
    assert "ann" not in kept
