"""The processes that share a store, on each store that several can share."""

from __future__ import annotations

import asyncio

import pytest

from gateway.storage.owners import UNTIL_GONE, Owner, OwnerBook, SharedStore
from gateway.storage.ports import Lease, Store
from pipeline.domain.errors import FenceLost
from tests.contracts.store_values import NOW, OTHER, THREAD, entry, record

pytestmark = pytest.mark.parametrize("store_kind", ["memory", "postgres"], indirect=True)

ALIVE_S = 60.0
GONE_S = -1.0
"""A report with this time to live has expired already, on a store with a separate clock too."""


@pytest.fixture
def owners(store: Store) -> OwnerBook:
    assert isinstance(store, SharedStore)
    return store.owners


def owner(name: str) -> Owner:
    return Owner(id=f"own-{name}", name=name, role="work", version="1.0", accounts=("web:site",))


async def alive(owners: OwnerBook, *names: str) -> None:
    for name in names:
        assert await owners.beat(owner(name), ttl_s=ALIVE_S, now=NOW)


async def lease(store: Store, name: str, thread: str = THREAD) -> Lease | None:
    return await store.acquire_lease(thread, f"own-{name}", ttl_s=UNTIL_GONE, now=NOW)


async def test_a_lease_holds_as_long_as_its_owner_reports(store: Store, owners: OwnerBook) -> None:
    await alive(owners, "a", "b")
    mine = await lease(store, "a")
    assert mine is not None
    assert await lease(store, "b") is None
    assert await owners.beat(owner("a"), ttl_s=GONE_S, now=NOW)
    theirs = await lease(store, "b")
    assert theirs is not None
    assert theirs.fence > mine.fence
    with pytest.raises(FenceLost):
        await store.append(mine, [record()])


async def test_a_report_after_the_earlier_one_expired_says_so(owners: OwnerBook) -> None:
    await alive(owners, "a")
    assert await owners.beat(owner("a"), ttl_s=GONE_S, now=NOW)
    assert not await owners.beat(owner("a"), ttl_s=ALIVE_S, now=NOW)
    assert await owners.beat(owner("a"), ttl_s=ALIVE_S, now=NOW)


async def test_an_owner_that_returns_learns_what_it_still_has(store: Store, owners: OwnerBook) -> None:
    await alive(owners, "a", "b")
    for thread in (THREAD, OTHER):
        assert await lease(store, "a", thread) is not None
    await owners.beat(owner("a"), ttl_s=GONE_S, now=NOW)
    assert await lease(store, "b", OTHER) is not None
    assert await owners.still("own-a", [THREAD, OTHER, "none"]) == {THREAD}


async def test_the_lease_of_a_process_that_does_not_report_holds_for_its_time(
    store: Store, owners: OwnerBook
) -> None:
    await alive(owners, "b")
    assert await store.acquire_lease(THREAD, "alone", ttl_s=30, now=NOW) is not None
    assert await lease(store, "b") is None
    assert await store.acquire_lease(THREAD, "own-b", ttl_s=UNTIL_GONE, now=NOW + 30) is not None


async def test_a_retired_owner_frees_everything_at_once(store: Store, owners: OwnerBook) -> None:
    await alive(owners, "a", "b")
    for thread in (THREAD, OTHER):
        assert await lease(store, "a", thread) is not None
    await owners.retire("own-a")
    for thread in (THREAD, OTHER):
        assert await lease(store, "b", thread) is not None


async def test_threads_with_work_and_without_a_live_owner_are_claimed_once(
    store: Store, owners: OwnerBook
) -> None:
    await alive(owners, "a", "b", "c")
    for number in range(20):
        await store.accept(entry(f"m{number}", thread=f"console:local:t{number}"))
    held = await lease(store, "c", "console:local:t7")
    assert held is not None
    assert await owners.unowned(now=NOW) == 19
    claims = await asyncio.gather(
        *(owners.claim(f"own-{name}", limit=3, now=NOW) for name in ("a", "b") for _ in range(4))
    )
    claimed = [one.thread for claim in claims for one in claim]
    assert len(claimed) == len(set(claimed)) == 19
    assert held.thread not in claimed
    assert await owners.unowned(now=NOW) == 0
    first = claims[0][0]
    await store.append(first, [record()])


async def test_the_thread_that_waits_longest_is_claimed_first(store: Store, owners: OwnerBook) -> None:
    await alive(owners, "a")
    for thread in (OTHER, THREAD):
        await store.accept(entry(thread, thread=thread))
    (claimed,) = await owners.claim("own-a", limit=1, now=NOW)
    assert claimed.thread == OTHER


async def test_threads_without_work_are_not_claimed(store: Store, owners: OwnerBook) -> None:
    await alive(owners, "a", "b")
    assert await lease(store, "a") is not None
    await owners.retire("own-a")
    assert await owners.claim("own-b", limit=9, now=NOW) == ()


async def test_owners_are_listed_with_what_they_hold(store: Store, owners: OwnerBook) -> None:
    await alive(owners, "b", "a")
    assert await lease(store, "a") is not None
    await owners.retire("own-b")
    one, other = await owners.listed(now=NOW)
    assert (one.owner, one.threads, one.left_s > 0) == (owner("a"), 1, True)
    assert (other.owner, other.threads, other.left_s > 0) == (owner("b"), 0, False)
