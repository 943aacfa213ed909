"""Leases kept by the clock: renewed while held, given up when lost, left alone once given back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.storage.leases import ProcessingCoordinator
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock


@asynccontextmanager
async def _kept() -> AsyncIterator[tuple[ProcessingCoordinator, MemoryStore, ManualClock]]:
    store, clock = MemoryStore(), ManualClock()
    await store.open()
    coordinator = ProcessingCoordinator(store, clock, lease_s=30)
    async with asyncio.TaskGroup() as group:
        renewal = group.create_task(coordinator.keep_renewing())
        yield coordinator, store, clock
        renewal.cancel()


async def test_a_turn_longer_than_its_lease_keeps_it() -> None:
    async with _kept() as (coordinator, store, clock):
        lost: list[str] = []
        assert await coordinator.acquire("t", lambda: lost.append("t")) is not None
        for _ in range(12):
            await clock.advance(10)
            assert await store.acquire_lease("t", "somebody", ttl_s=30, now=clock.now()) is None
        assert lost == []


async def test_a_lease_that_was_taken_over_is_reported_once() -> None:
    async with _kept() as (coordinator, store, clock):
        lost: list[str] = []
        await coordinator.acquire("t", lambda: lost.append("t"))
        await store.break_leases()
        await store.acquire_lease("t", "somebody", ttl_s=3000, now=clock.now())
        await clock.advance(60)
        assert lost == ["t"]


async def test_a_lease_given_back_is_not_missed() -> None:
    async with _kept() as (coordinator, store, clock):
        lost: list[str] = []
        first = await coordinator.acquire("a", lambda: lost.append("a"))
        second = await coordinator.acquire("b", lambda: lost.append("b"))
        assert first is not None
        assert second is not None
        await coordinator.release(second)
        await clock.advance(60)
        assert lost == []
        assert await store.acquire_lease("b", "somebody", ttl_s=30, now=clock.now()) is not None


async def test_giving_back_an_old_lease_leaves_its_successor_alone() -> None:
    async with _kept() as (coordinator, store, clock):
        old = await coordinator.acquire("t", lambda: None)
        assert old is not None
        assert await coordinator.acquire("t", lambda: None) is not None
        await coordinator.release(old)
        await clock.advance(100)
        assert await store.acquire_lease("t", "somebody", ttl_s=30, now=clock.now()) is None
