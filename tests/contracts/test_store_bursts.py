"""Entries that the turn of an earlier entry answers too, on every store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.storage.bursts import FinishedToo
from gateway.storage.ports import Lease, Store
from gateway.storage.sizes import StoreCounts
from pipeline.domain.errors import AlreadyDone, FenceLost, StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import NOW, OTHER, THREAD, entry, lease_on, record, reply, turn


async def three(store: Store) -> tuple[tuple[int, int, int], Lease]:
    """Three entries of one thread, by seq."""
    first, second, third = [(await store.accept(entry(key))).seq for key in ("1", "2", "3")]
    return (first, second, third), await lease_on(store)


async def joined(store: Store) -> list[tuple[int, int, bool]]:
    return [(one.seq, one.joined, one.steered) for one in await store.open_entries(THREAD)]


async def test_entries_that_join_a_turn_stay_open_and_say_which_turn_it_is(
    store: Store, reopen: Reopen
) -> None:
    (first, second, third), lease = await three(store)
    await store.bursts.join(lease, first, [second])
    await store.bursts.join(lease, first, [second, third], steered=True)
    again = await reopen()
    assert await joined(again) == [(first, 0, False), (second, first, False), (third, first, True)]
    lead = await again.next_entry(THREAD)
    assert lead is not None
    assert lead.seq == first


async def test_one_commit_finishes_every_entry_of_its_turn(store: Store) -> None:
    (first, second, third), lease = await three(store)
    await store.bursts.join(lease, first, [second])
    also = (FinishedToo(seq=second, body={"native_id": "n2"}),)
    commit = replace(turn(first, record("assistant"), outbox=(reply(),)), also=also)
    await store.commit_turn(lease, commit)
    assert await joined(store) == [(third, 0, False)]
    assert await store.counts() == StoreCounts(inbox_open=1, inbox_done=2, outbox_open=1, records=1)
    bodies = [body for _, body in await store.newest_entries(limit=3)]
    assert bodies == [{"text": "hello 3"}, {"native_id": "n2"}, {"text": "hello 1"}]


@pytest.mark.parametrize("gone", ["finished", "of another thread"])
async def test_a_commit_that_cannot_finish_all_of_them_leaves_no_trace(store: Store, gone: str) -> None:
    (first, second, third), lease = await three(store)
    if gone == "finished":
        await store.commit_turn(lease, turn(second))
    else:
        second = (await store.accept(entry("4", thread=OTHER))).seq
    before = await store.counts()
    commit = replace(turn(first, record("assistant"), outbox=(reply(),)), also=(FinishedToo(seq=second),))
    with pytest.raises(AlreadyDone, match=str(second)):
        await store.commit_turn(lease, commit)
    assert await store.counts() == before
    assert [seq for seq, _, _ in await joined(store)] == ([first, third] if gone == "finished" else [1, 2, 3])


async def test_an_entry_whose_turn_has_ended_without_it_has_a_turn_that_others_can_join(store: Store) -> None:
    (first, second, third), lease = await three(store)
    await store.bursts.join(lease, first, [second])
    await store.commit_turn(lease, turn(first))
    await store.bursts.join(lease, second, [third])
    assert await joined(store) == [(second, first, False), (third, second, False)]


async def test_a_stale_lease_joins_nothing(store: Store) -> None:
    (first, second, _), lease = await three(store)
    await lease_on(store, owner="you", now=NOW + 31)
    with pytest.raises(FenceLost):
        await store.bursts.join(lease, first, [second])
    assert [turn_of for _, turn_of, _ in await joined(store)] == [0, 0, 0]


async def test_only_open_later_entries_of_the_thread_can_join_and_only_one_turn(store: Store) -> None:
    (first, second, third), lease = await three(store)
    foreign = (await store.accept(entry("4", thread=OTHER))).seq
    await store.bursts.join(lease, second, [third])
    for lead, one in (
        (first, third),
        (second, first),
        (third, third),
        (first, foreign),
        (first, 99),
        (99, second),
    ):
        with pytest.raises(AlreadyDone):
            await store.bursts.join(lease, lead, [one])
    # Nothing is written if one of several cannot join.
    with pytest.raises(AlreadyDone):
        await store.bursts.join(lease, first, [second, third])
    assert await joined(store) == [(first, 0, False), (second, 0, False), (third, second, False)]
    await store.close()
    with pytest.raises(StorageError):
        await store.bursts.join(lease, first, [second])
