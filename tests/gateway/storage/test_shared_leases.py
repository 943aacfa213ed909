"""The accounts of one process among several: when it may call their platforms, and when it may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.storage.lease import Lease
from gateway.storage.memory import MemoryStore
from gateway.storage.shared_leases import SharedAccounts, SharedCoordinator
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import FenceLost, StorageError

ACCOUNT = ("telegram", "main")
TTL_S = 6.0


@asynccontextmanager
async def _two() -> AsyncIterator[tuple[ManualClock, SharedAccounts, SharedAccounts]]:
    """Two processes that have reported; the first has the account."""
    clock, store = ManualClock(), MemoryStore()
    await store.open()
    one, two = (
        SharedAccounts(
            SharedCoordinator(
                store, store.owners, clock, name=name, role="all", version="1", beat_s=2.0, ttl_s=TTL_S
            )
        )
        for name in ("one", "two")
    )
    for accounts in (one, two):
        await accounts.coordinator.report()
    assert await one.take_one(ACCOUNT, lambda: None)
    assert not await two.take_one(ACCOUNT, lambda: None)
    yield clock, one, two
    await store.close()


async def test_a_process_that_could_not_report_calls_no_platform() -> None:
    async with _two() as (clock, one, _):
        one.check(ACCOUNT)
        await clock.advance(TTL_S / 2 + 0.1)
        with pytest.raises(StorageError, match="could not report"):
            one.check(ACCOUNT)
        await one.coordinator.report()
        one.check(ACCOUNT)


async def test_a_process_that_reports_again_does_not_call_the_platform_of_an_account_it_has_lost() -> None:
    async with _two() as (clock, one, two):
        await clock.advance(TTL_S + 0.1)
        await two.coordinator.report()
        assert await two.take_one(ACCOUNT, lambda: None)
        await one.coordinator.report()
        assert one.coordinator.is_current
        with pytest.raises(FenceLost, match="telegram:main"):
            one.check(ACCOUNT)
        two.check(ACCOUNT)
        with pytest.raises(FenceLost, match="slack:main"):
            two.check(("slack", "main"))


class _Away(MemoryStore):
    """A store that at times takes no lease back."""

    away = False

    async def release_lease(self, lease: Lease) -> None:
        if self.away:
            raise StorageError("the store cannot be reached")
        await super().release_lease(lease)


@pytest.mark.parametrize("again", [False, True])
async def test_a_lease_that_could_not_be_given_back_is_free_after_the_next_report(again: bool) -> None:
    clock, store = ManualClock(), _Away()
    await store.open()
    one, two = (
        SharedCoordinator(
            store, store.owners, clock, name=name, role="all", version="1", beat_s=2.0, ttl_s=TTL_S
        )
        for name in ("one", "two")
    )
    for process in (one, two):
        await process.report()
    lease = await one.acquire("web:local:c1", lambda: None)
    assert lease is not None
    store.away = True
    await one.release(lease)
    await one.report()
    store.away = False
    assert await two.acquire("web:local:c1", lambda: None) is None
    if again:
        assert await one.acquire("web:local:c1", lambda: None) is not None
    await one.report()
    # What was acquired meanwhile stays.
    assert (await two.acquire("web:local:c1", lambda: None) is None) is again
    await store.close()
