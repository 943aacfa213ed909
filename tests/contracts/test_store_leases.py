"""Leases and fences, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.storage.ports import Lease, SentPart, Store
from pipeline.domain.errors import FenceLost
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import (
    NOW,
    OTHER,
    THREAD,
    entry,
    lease_on,
    record,
    reply,
    sender,
    sent_row,
    turn,
)

TakeOver = Callable[[Store, Lease], Awaitable[None]]


async def _by_expiry(store: Store, lease: Lease) -> None:
    assert await store.acquire_lease(lease.thread, "you", ttl_s=30, now=lease.expires_at) is not None


async def _by_release(store: Store, lease: Lease) -> None:
    await store.release_lease(lease)


async def _by_breaking(store: Store, lease: Lease) -> None:
    assert await store.break_leases() > 0
    assert await store.break_leases() == 0


async def _by_ourselves(store: Store, lease: Lease) -> None:
    await lease_on(store, lease.thread)


lost = pytest.mark.parametrize("lose", [_by_expiry, _by_release, _by_breaking, _by_ourselves])


async def test_another_owner_waits_until_the_lease_expires(store: Store) -> None:
    mine = await lease_on(store)
    assert mine.expires_at == NOW + 30
    assert await store.acquire_lease(THREAD, "you", ttl_s=30, now=NOW + 29.9) is None
    yours = await store.acquire_lease(THREAD, "you", ttl_s=30, now=NOW + 30)
    assert yours is not None
    assert (yours.owner, yours.fence > mine.fence) == ("you", True)


async def test_threads_are_leased_independently(store: Store) -> None:
    await lease_on(store, THREAD, owner="me")
    assert (await lease_on(store, OTHER, owner="you")).thread == OTHER


async def test_renewing_keeps_the_fence_and_moves_the_expiry(store: Store) -> None:
    mine = await lease_on(store)
    renewed = await store.renew_lease(mine, ttl_s=30, now=NOW + 20)
    assert renewed == Lease(thread=THREAD, owner="me", fence=mine.fence, expires_at=NOW + 50)
    assert await store.acquire_lease(THREAD, "you", ttl_s=30, now=NOW + 40) is None


async def test_an_expired_lease_that_no_one_took_can_still_be_renewed(store: Store) -> None:
    mine = await lease_on(store)
    assert (await store.renew_lease(mine, ttl_s=30, now=NOW + 500)).fence == mine.fence


async def test_of_twenty_owners_one_gets_the_lease(store: Store) -> None:
    leases = await asyncio.gather(
        *(store.acquire_lease(THREAD, f"owner-{number}", ttl_s=30, now=NOW) for number in range(20))
    )
    assert sum(lease is not None for lease in leases) == 1


async def test_a_fence_never_repeats(store: Store, reopen: Reopen) -> None:
    fences = [(await lease_on(store)).fence]
    released = await lease_on(store)
    await store.release_lease(released)
    fences += [released.fence, (await lease_on(store, owner="you")).fence]
    await store.break_leases()
    fences.append((await lease_on(store, owner="them")).fence)
    follower = await reopen()
    fences.append((await lease_on(follower, owner="them", now=NOW + 100)).fence)
    assert fences == sorted(set(fences))


async def test_releasing_a_stale_lease_leaves_the_new_owner_alone(store: Store) -> None:
    mine = await lease_on(store)
    yours = await lease_on(store, owner="you", now=NOW + 30)
    await store.release_lease(mine)
    assert (await store.renew_lease(yours, ttl_s=30, now=NOW + 31)).fence == yours.fence


async def test_breaking_leases_frees_every_thread_at_once(store: Store) -> None:
    await lease_on(store, THREAD)
    await lease_on(store, OTHER)
    assert await store.break_leases() == 2
    assert await store.break_leases() == 0
    assert await store.acquire_lease(THREAD, "you", ttl_s=30, now=NOW) is not None


@lost
async def test_a_stale_lease_is_refused_wherever_it_writes(store: Store, lose: TakeOver) -> None:
    accepted = await store.accept(entry("1"))
    mine = await lease_on(store)
    await lose(store, mine)
    commit = turn(accepted.seq, record("assistant"), outbox=(reply(),))
    for write in (
        store.append(mine, [record()]),
        store.start_attempt(mine, accepted.seq),
        store.commit_turn(mine, commit),
        store.renew_lease(mine, ttl_s=30, now=NOW),
    ):
        with pytest.raises(FenceLost, match=THREAD):
            await write
    waiting = await store.next_entry(THREAD)
    assert waiting is not None
    assert waiting.attempts == 0
    assert await store.read_log(THREAD) == ()
    assert await store.outbox_open() == ()


async def test_a_lease_that_was_never_given_is_refused(store: Store) -> None:
    real = await lease_on(store)
    forged = Lease(thread=THREAD, owner="you", fence=real.fence, expires_at=real.expires_at)
    unknown = Lease(thread="no one", owner="me", fence=1, expires_at=NOW)
    for lease in (forged, unknown):
        with pytest.raises(FenceLost):
            await store.append(lease, [record()])


@lost
async def test_a_stale_lease_of_an_account_changes_nothing_of_its_replies(
    store: Store, lose: TakeOver
) -> None:
    row_id = await sent_row(store)
    before = await store.outbox_row(row_id)
    mine = await sender(store)
    await lose(store, mine)
    for write in (
        store.mark_sending(mine, row_id),
        store.mark_sent(mine, row_id, "native-7", NOW, forget=True),
        store.mark_retry(mine, row_id, "slow down", NOW + 1),
        store.mark_failed(mine, row_id, "gone", forget=True),
        store.record_sent_part(mine, "msg-1:answer", SentPart(part=0, native_id="7", final=False)),
    ):
        with pytest.raises(FenceLost, match=mine.thread):
            await write
    assert await store.outbox_row(row_id) == before
    assert await store.shown("msg-1:answer") == ()
    assert [one.body for one in await store.read_log(THREAD)] == [{}]


async def test_a_reply_is_written_under_the_lease_of_its_thread_or_account(store: Store) -> None:
    row_id = await sent_row(store)
    longer = await lease_on(store, f"{THREAD}8")
    for other in (await sender(store, OTHER), await lease_on(store, OTHER), longer):
        with pytest.raises(FenceLost):
            await store.mark_sending(other, row_id)
        with pytest.raises(FenceLost):
            await store.mark_failed(other, row_id, "gone")
    await store.mark_sending(await lease_on(store), row_id)
    await store.mark_sent(await sender(store), row_id, "native-7", NOW)
    row = await store.outbox_row(row_id)
    assert row is not None
    assert (row.state, row.attempts) == ("sent", 1)
