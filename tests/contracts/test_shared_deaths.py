"""Deaths of one process among several, on each store that several can share."""

from __future__ import annotations

import pytest

from gateway.storage.crash_counts import Deaths
from gateway.storage.owners import UNTIL_GONE, Owner
from tests.contracts.shared_store import WholeStore
from tests.contracts.store_values import NOW, OTHER, THREAD, entry, turn

pytestmark = pytest.mark.parametrize("store_kind", ["memory", "postgres"], indirect=True)


async def alive(store: WholeStore, *names: str) -> None:
    for name in names:
        await store.owners.beat(Owner(id=name, name=name, role="work", version="1"), ttl_s=600.0, now=NOW)


async def begun(store: WholeStore, owner: str, name: str, thread: str = THREAD) -> int:
    """The seq of an entry that the process works on."""
    seq = (await store.accept(entry(name, thread=thread))).seq
    lease = await store.acquire_lease(thread, owner, ttl_s=UNTIL_GONE, now=NOW)
    assert lease is not None
    await store.start_attempt(lease, seq)
    return seq


async def test_who_takes_a_thread_over_counts_the_death_of_its_process(store: WholeStore) -> None:
    await alive(store, "own_a", "own_b")
    seq = await begun(store, "own_a", "1")
    assert await store.owners.claim("own_b", limit=9, now=NOW) == ()
    assert await store.deaths.of((seq,)) == {}
    await store.owners.retire("own_a")
    (lease,) = await store.owners.claim("own_b", limit=9, now=NOW)
    assert await store.deaths.of((seq, 99)) == {seq: Deaths(total=1, alone=1)}
    await store.start_attempt(lease, seq)
    await store.owners.retire("own_b")
    await alive(store, "own_c")
    assert await store.acquire_lease(THREAD, "own_c", ttl_s=UNTIL_GONE, now=NOW) is not None
    assert await store.deaths.of((seq,)) == {seq: Deaths(total=2, alone=2)}


async def test_of_two_that_a_process_worked_on_neither_has_died_alone(store: WholeStore) -> None:
    """Also if they are taken over by different processes, one after the other."""
    await alive(store, "own_a", "own_b", "own_c", "own_d")
    first, second = await begun(store, "own_a", "1"), await begun(store, "own_a", "2", OTHER)
    third = await begun(store, "own_d", "3", "web:site:third")
    await store.owners.retire("own_a")
    for owner in ("own_b", "own_c"):
        assert len(await store.owners.claim(owner, limit=1, now=NOW)) == 1
        assert await store.deaths.of((first, second, third)) == {
            first: Deaths(total=1),
            second: Deaths(total=1),
        }


async def test_what_was_excused_released_or_finished_is_no_death(store: WholeStore) -> None:
    await alive(store, "own_a", "own_b")
    seq = await begun(store, "own_a", "1")
    lease = await store.acquire_lease(THREAD, "own_a", ttl_s=UNTIL_GONE, now=NOW)
    assert lease is not None
    await store.discount_attempt(lease, seq)
    await store.owners.retire("own_a")
    (taken,) = await store.owners.claim("own_b", limit=9, now=NOW)
    assert await store.deaths.of((seq,)) == {}
    await store.start_attempt(taken, seq)
    await store.release_lease(taken)
    assert len(await store.owners.claim("own_b", limit=9, now=NOW)) == 1
    assert await store.deaths.of((seq,)) == {}
    again = await store.acquire_lease(THREAD, "own_b", ttl_s=UNTIL_GONE, now=NOW)
    assert again is not None
    await store.commit_turn(again, turn(seq))
    await store.owners.retire("own_b")
    await alive(store, "own_c")
    assert await store.acquire_lease(THREAD, "own_c", ttl_s=UNTIL_GONE, now=NOW) is not None
    assert await store.deaths.of((seq,)) == {}
