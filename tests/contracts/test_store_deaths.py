"""Deaths of the process: at which entries it died, and at which of them alone."""

from __future__ import annotations

from gateway.storage.crash_counts import Deaths
from gateway.storage.ports import Store
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import OTHER, THREAD, entry, lease_on, turn


async def _begun(store: Store, name: str, thread: str = THREAD) -> int:
    seq = (await store.accept(entry(name, thread=thread))).seq
    await store.start_attempt(await lease_on(store, thread), seq)
    return seq


async def test_an_entry_that_was_at_work_alone_has_died_alone(store: Store, reopen: Reopen) -> None:
    seq = await _begun(store, "1")
    await store.accept(entry("waits", thread=OTHER))
    after = await reopen()
    assert await after.deaths.note() == {seq: Deaths(total=1, alone=1)}
    assert await after.deaths.note() == {seq: Deaths(total=1, alone=1)}


async def test_of_two_that_were_at_work_neither_has_died_alone(store: Store) -> None:
    first, second = await _begun(store, "1"), await _begun(store, "2", OTHER)
    assert await store.deaths.note() == {first: Deaths(total=1), second: Deaths(total=1)}
    await store.start_attempt(await lease_on(store, OTHER), second)
    expected = {first: Deaths(total=1), second: Deaths(total=2, alone=1)}
    assert await store.deaths.note() == expected


async def test_an_attempt_that_was_excused_or_finished_is_no_death(store: Store) -> None:
    excused = await _begun(store, "1")
    await store.discount_attempt(await lease_on(store), excused)
    assert await store.deaths.note() == {}
    await store.start_attempt(await lease_on(store), excused)
    assert await store.deaths.note() == {excused: Deaths(total=1, alone=1)}
    await store.commit_turn(await lease_on(store), turn(excused))
    assert await store.deaths.note() == {}
