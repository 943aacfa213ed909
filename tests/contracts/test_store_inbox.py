"""Accepting, queueing and cancelling, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.storage.ports import Store
from pipeline.domain.errors import AlreadyDone, FenceLost, StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import (
    NOW,
    OTHER,
    THREAD,
    accepted_with_lease,
    entry,
    lease_on,
    record,
    turn,
)

AWKWARD: dict[str, Any] = {
    "text": "naïve 🙂 \u0000 \ud800 \u2028",
    "nested": {"list": [1, 2.5, None, True, {"deep": []}], "big": 2**80},
    "": "",
}


async def test_an_accepted_entry_waits_as_it_was_given(store: Store) -> None:
    accepted = await store.accept(entry("1", body=AWKWARD))
    waiting = await store.next_entry(THREAD)
    assert waiting is not None
    assert not accepted.duplicate
    assert (waiting.seq, waiting.thread, waiting.message_id) == (accepted.seq, THREAD, "msg-1")
    assert (waiting.kind, waiting.received_at) == ("message", NOW)
    assert (waiting.attempts, waiting.cancelled) == (0, False)
    assert waiting.body == AWKWARD


async def test_of_fifty_accepts_of_one_event_exactly_one_is_new(store: Store) -> None:
    answers = await asyncio.gather(*(store.accept(entry("same")) for _ in range(50)))
    assert [answer.duplicate for answer in answers].count(False) == 1
    assert len({answer.seq for answer in answers}) == 1
    assert len(await store.open_entries(THREAD)) == 1


async def test_a_duplicate_names_the_first_entry_even_after_it_is_finished(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    await store.commit_turn(lease, turn(accepted.seq))
    again = await store.accept(entry("1", body={"text": "redelivered"}))
    assert again.duplicate
    assert (again.seq, again.message_id) == (accepted.seq, accepted.message_id)
    assert await store.next_entry(THREAD) is None


async def test_entries_of_a_thread_come_in_the_order_of_acceptance(store: Store) -> None:
    for number in range(20):
        await store.accept(entry(str(number), thread=THREAD if number % 2 else OTHER))
    waiting = await store.open_entries(THREAD)
    assert [row.message_id for row in waiting] == [f"msg-{number}" for number in range(1, 20, 2)]
    assert [row.seq for row in waiting] == sorted(row.seq for row in waiting)
    assert await store.next_entry(THREAD) == waiting[0]


async def test_accepts_started_together_keep_the_order_of_the_calls(store: Store) -> None:
    answers = await asyncio.gather(*(store.accept(entry(str(number))) for number in range(40)))
    assert [answer.seq for answer in answers] == sorted(answer.seq for answer in answers)


async def test_finishing_an_entry_lets_the_next_one_through(store: Store) -> None:
    first, lease = await accepted_with_lease(store, "1")
    second = await store.accept(entry("2"))
    await store.commit_turn(lease, turn(first.seq))
    waiting = await store.next_entry(THREAD)
    assert waiting is not None
    assert waiting.seq == second.seq


async def test_open_threads_start_with_the_one_that_waits_longest(store: Store) -> None:
    first = await store.accept(entry("1", thread=OTHER))
    await store.accept(entry("2", thread=THREAD))
    await store.accept(entry("3", thread=OTHER))
    assert await store.open_threads() == (OTHER, THREAD)
    await store.commit_turn(await lease_on(store, OTHER), turn(first.seq))
    assert await store.open_threads() == (THREAD, OTHER)


async def test_a_thread_no_one_wrote_in_has_nothing_waiting(store: Store) -> None:
    assert await store.next_entry("no one") is None
    assert await store.open_entries("no one") == ()
    assert await store.open_threads() == ()


async def test_attempts_are_counted_one_by_one(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    assert [await store.start_attempt(lease, accepted.seq) for _ in range(3)] == [1, 2, 3]
    waiting = await store.next_entry(THREAD)
    assert waiting is not None
    assert waiting.attempts == 3


async def test_a_full_queue_takes_no_new_entry_but_knows_what_it_has(store: Store) -> None:
    for number in range(3):
        assert not (await store.accept(entry(str(number)), limit=3)).full
    refused = await store.accept(entry("3"), limit=3)
    assert (refused.full, refused.duplicate, refused.seq) == (True, False, 0)
    again = await store.accept(entry("1"), limit=3)
    assert (again.full, again.duplicate) == (False, True)
    assert not (await store.accept(entry("elsewhere", thread=OTHER), limit=3)).full
    assert not (await store.accept(entry("3"))).full
    assert len(await store.open_entries(THREAD)) == 4


async def test_finished_entries_make_room_in_the_queue(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    assert (await store.accept(entry("2"), limit=1)).full
    await store.commit_turn(lease, turn(accepted.seq))
    assert not (await store.accept(entry("2"), limit=1)).full


async def test_many_at_once_do_not_slip_past_the_limit(store: Store) -> None:
    taken = await asyncio.gather(*(store.accept(entry(str(number)), limit=5) for number in range(20)))
    assert sum(not accepted.full for accepted in taken) == 5


async def test_attempts_can_be_excused_and_never_more_than_there_were(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    for _ in range(2):
        await store.start_attempt(lease, accepted.seq)
    for expected in (1, 2, 2):
        await store.discount_attempt(lease, accepted.seq)
        waiting = await store.next_entry(THREAD)
        assert waiting is not None
        assert (waiting.attempts, waiting.excused) == (2, expected)
    await store.commit_turn(lease, turn(accepted.seq))
    with pytest.raises(AlreadyDone):
        await store.discount_attempt(lease, accepted.seq)
    with pytest.raises(FenceLost):
        await store.discount_attempt(replace(lease, fence=lease.fence + 1), accepted.seq)


async def test_an_attempt_can_be_counted_together_with_its_first_records(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    await store.append(lease, [record("user")], attempt=accepted.seq)
    await store.append(lease, [record("step")])
    waiting = await store.next_entry(THREAD)
    assert waiting is not None
    assert waiting.attempts == 1


async def test_records_with_an_attempt_that_cannot_be_counted_are_not_written(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    await store.commit_turn(lease, turn(accepted.seq))
    before = await store.read_log(THREAD)
    with pytest.raises(StorageError, match=str(accepted.seq)):
        await store.append(lease, [record("step")], attempt=accepted.seq)
    assert await store.read_log(THREAD) == before


async def test_a_finished_foreign_or_unknown_entry_cannot_be_attempted(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    foreign = await store.accept(entry("2", thread=OTHER))
    await store.commit_turn(lease, turn(accepted.seq))
    for seq in (accepted.seq, foreign.seq, 999):
        with pytest.raises(StorageError, match=str(seq)):
            await store.start_attempt(lease, seq)


async def test_cancelling_marks_each_unfinished_entry_once(store: Store) -> None:
    seqs = [(await store.accept(entry(str(number)))).seq for number in range(4)]
    await store.accept(entry("elsewhere", thread=OTHER))
    await store.commit_turn(await lease_on(store), turn(seqs[0]))
    assert await store.cancel_open(THREAD, up_to_seq=seqs[2]) == 2
    assert [row.cancelled for row in await store.open_entries(THREAD)] == [True, True, False]
    assert await store.cancel_open(THREAD) == 1
    assert await store.cancel_open(THREAD) == 0
    assert [row.cancelled for row in await store.open_entries(OTHER)] == [False]


async def test_what_was_accepted_is_there_after_a_restart(store: Store, reopen: Reopen) -> None:
    accepted, lease = await accepted_with_lease(store)
    await store.start_attempt(lease, accepted.seq)
    await store.cancel_open(THREAD)
    follower = await reopen()
    waiting = await follower.next_entry(THREAD)
    assert waiting is not None
    assert (waiting.seq, waiting.attempts, waiting.cancelled) == (accepted.seq, 1, True)
    assert (await follower.accept(entry("1"))).duplicate


async def test_a_caller_cannot_change_a_stored_body(store: Store) -> None:
    body = {"list": [1]}
    await store.accept(entry("1", body=body))
    body["list"].append(2)
    first = await store.next_entry(THREAD)
    assert first is not None
    first.body["list"].append(3)
    second = await store.next_entry(THREAD)
    assert second is not None
    assert second.body == {"list": [1]}


@pytest.mark.parametrize("body", [{"x": object()}, {"x": float("nan")}, {"x": {1, 2}}])
async def test_a_body_that_is_not_plain_data_is_refused(store: Store, body: dict[str, Any]) -> None:
    with pytest.raises(StorageError, match="plain JSON data"):
        await store.accept(entry("1", body=body))
    assert await store.open_threads() == ()


async def test_a_closed_store_refuses_in_words(store: Store) -> None:
    await store.close()
    await store.close()
    with pytest.raises(StorageError, match="closed"):
        await store.accept(entry("1"))
    with pytest.raises(StorageError, match="closed"):
        await store.next_entry(THREAD)


async def test_the_writability_probe_leaves_nothing_behind(store: Store) -> None:
    before = await store.counts()
    await store.check_writable()
    await store.check_writable()
    assert await store.counts() == before


async def test_an_entry_that_begins_at_once_has_its_first_attempt_counted(store: Store) -> None:
    accepted = await store.accept(entry("1"), begin=True)
    waiting = await store.next_entry(THREAD)
    assert waiting is not None
    assert (accepted.begun, waiting.attempts, waiting.begun) == (True, 1, False)
    assert (await store.deaths.note()).keys() == {accepted.seq}


async def test_an_entry_behind_an_unfinished_one_does_not_begin(store: Store) -> None:
    first = await store.accept(entry("1"))
    second = await store.accept(entry("2"), begin=True)
    elsewhere = await store.accept(entry("3", thread=OTHER), begin=True)
    assert (first.begun, second.begun, elsewhere.begun) == (False, False, True)
    assert [one.attempts for one in await store.open_entries(THREAD)] == [0, 0]
    again = await store.accept(entry("3", thread=OTHER), begin=True)
    assert (again.duplicate, again.begun) == (True, False)


async def test_after_the_last_entry_is_finished_the_next_one_begins(store: Store) -> None:
    first, lease = await accepted_with_lease(store, "1")
    await store.commit_turn(lease, turn(first.seq))
    assert (await store.accept(entry("2"), begin=True)).begun
    assert (await store.accept(entry("3"), begin=True, limit=1)).full


async def test_a_key_with_a_character_that_a_database_cannot_hold_is_one_key(store: Store) -> None:
    first = await store.accept(replace(entry("1"), dedupe_key="a\0b"))
    assert (await store.accept(replace(entry("1"), dedupe_key="a\0b"))).duplicate
    other = await store.accept(replace(entry("2"), dedupe_key="a?b"))
    assert not other.duplicate
    assert {one.seq for one in await store.open_entries(THREAD)} == {first.seq, other.seq}
