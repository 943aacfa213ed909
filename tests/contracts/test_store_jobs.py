"""The job book, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.storage.jobs import Job, NewJob
from gateway.storage.ports import NewEntry, Store
from pipeline.domain.errors import AlreadyDone, StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import NOW, accepted_with_lease, record, turn

ANN, BEN = "web:site:user:ann", "web:site:user:ben"


def job(key: str = "1", *, kind: str = "title", in_s: float = 0.0, owner: str = "", **body: Any) -> NewJob:
    return NewJob(kind=kind, key=key, due=NOW + in_s, thread="web:site:room", owner=owner, body=body)


async def claimed(store: Store, *, kind: str = "title", at: float = NOW) -> Job:
    found = await store.jobs.claim(kind, now=at, until=at + 60)
    assert found is not None
    return found


async def keys(store: Store, **of: Any) -> list[str]:
    return [one.key for one in await store.jobs.listed(limit=100, **of)]


async def test_a_job_comes_back_as_it_was_added(store: Store) -> None:
    assert await store.jobs.add(job(owner=ANN, in_s=5, text="A\ud800 语音"))
    assert await store.jobs.claim("title", now=NOW + 4.9, until=NOW + 99) is None
    found = await claimed(store, at=NOW + 5)
    assert (found.kind, found.key, found.due, found.thread) == ("title", "1", NOW + 5, "web:site:room")
    assert (found.owner, found.body, found.state, found.error) == (ANN, {"text": "A\ud800 语音"}, "open", "")
    assert (found.attempts, found.claimed, found.ready) == (1, True, NOW + 65)


async def test_a_second_job_with_the_key_of_an_open_one_is_not_added(store: Store) -> None:
    await store.jobs.add(job(n=1))
    assert await store.jobs.add(job(in_s=-5, n=2))
    assert await store.jobs.add(job(kind="summary", n=3))
    assert [(one.kind, one.body) for one in await store.jobs.listed(limit=9)] == [
        ("title", {"n": 1}),
        ("summary", {"n": 3}),
    ]


async def test_an_owner_has_no_more_jobs_of_a_kind_than_the_limit(store: Store) -> None:
    assert await store.jobs.add(job("1", owner=ANN), limit=2)
    assert await store.jobs.add(job("2", owner=ANN), limit=2)
    assert not await store.jobs.add(job("3", owner=ANN), limit=2)
    assert await store.jobs.add(job("2", owner=ANN), limit=2)
    assert await store.jobs.add(job("3", owner=BEN), limit=2)
    assert await store.jobs.add(job("3", kind="summary", owner=ANN), limit=2)
    assert [one.key for one in await store.jobs.of("title", ANN)] == ["1", "2"]


async def test_the_job_that_is_ready_longest_is_claimed_first_and_each_by_one_worker(store: Store) -> None:
    for key, in_s in (("late", 3.0), ("soon", 1.0), ("b", 2.0), ("a", 2.0)):
        await store.jobs.add(job(key, in_s=in_s))
    tries = (store.jobs.claim("title", now=NOW + 9, until=NOW + 60) for _ in range(6))
    found = await asyncio.gather(*tries)
    assert [one and one.key for one in found] == ["soon", "b", "a", "late", None, None]


async def test_the_next_time_is_that_of_a_due_time_or_of_the_end_of_a_lease(store: Store) -> None:
    assert await store.jobs.next_ready("title") is None
    await store.jobs.add(job("1", in_s=5))
    await store.jobs.add(job("2", kind="summary"))
    assert await store.jobs.next_ready("title") == NOW + 5
    held = await claimed(store, at=NOW + 5)
    assert await store.jobs.next_ready("title") == NOW + 65
    assert await store.jobs.done(held)
    assert await store.jobs.next_ready("title") is None


async def test_a_worker_whose_lease_ended_reports_nothing(store: Store) -> None:
    await store.jobs.add(job())
    slow = await claimed(store)
    assert await store.jobs.claim("title", now=NOW + 59, until=NOW + 99) is None
    quick = await claimed(store, at=NOW + 60)
    assert (quick.id, quick.attempts) == (slow.id, 2)
    assert not await store.jobs.done(slow)
    assert not await store.jobs.retry(slow, at=NOW)
    assert not await store.jobs.give_up(slow, error="late")
    assert await store.jobs.done(quick)
    assert not await store.jobs.done(quick)


async def test_a_job_added_after_a_done_one_is_not_ended_by_its_worker(store: Store) -> None:
    await store.jobs.add(job())
    slow = await claimed(store)
    await store.jobs.remove("title", "", "1")
    await store.jobs.add(job())
    again = await claimed(store)
    assert not await store.jobs.done(slow)
    assert await store.jobs.done(again)


async def test_a_retry_waits_for_its_time_and_counts_unless_it_says_not(store: Store) -> None:
    await store.jobs.add(job())
    assert await store.jobs.retry(await claimed(store), at=NOW + 30, error="no \ud800 model")
    (waiting,) = await store.jobs.listed(limit=1)
    assert (waiting.attempts, waiting.error, waiting.claimed) == (1, "no ? model", False)
    assert (waiting.due, waiting.ready) == (NOW, NOW + 30)
    assert await store.jobs.claim("title", now=NOW + 29, until=NOW + 99) is None
    second = await claimed(store, at=NOW + 30)
    assert await store.jobs.retry(second, at=NOW + 31, counted=False)
    assert (await claimed(store, at=NOW + 31)).attempts == 2


async def test_a_job_that_is_given_up_stays_until_it_is_retried_or_dropped(store: Store) -> None:
    for key in ("1", "2", "3"):
        await store.jobs.add(job(key, owner=ANN))
        await store.jobs.give_up(await claimed(store), error=f"broken {key}")
    await store.jobs.add(job("open"))
    assert await store.jobs.next_ready("title") == NOW
    assert await store.jobs.of("title", ANN) == ()
    dead = await store.jobs.listed(limit=9, state="dead")
    assert (dead[0].key, dead[0].state, dead[0].error) == ("1", "dead", "broken 1")
    assert await keys(store) == ["1", "2", "3", "open"]

    assert await store.jobs.reopen(dead[0].id)
    assert not await store.jobs.reopen(dead[0].id)
    assert await store.jobs.drop(dead[1].id)
    assert not await store.jobs.drop(dead[1].id)
    assert await store.jobs.add(job("3", in_s=9, n="new"))
    assert await keys(store) == ["1", "open", "3"]
    (reopened, _, replaced) = await store.jobs.listed(limit=9)
    assert (reopened.ready, reopened.attempts, reopened.error) == (NOW, 0, "")
    assert (replaced.body, replaced.attempts, replaced.error) == ({"n": "new"}, 0, "")


async def test_owners_see_and_remove_their_own_jobs_only(store: Store) -> None:
    await store.jobs.add(job("late", owner=ANN, in_s=9))
    await store.jobs.add(job("soon", owner=ANN, in_s=1))
    await store.jobs.add(job("ben", owner=BEN))
    assert [one.key for one in await store.jobs.of("title", ANN)] == ["soon", "late"]
    assert not await store.jobs.remove("title", BEN, "soon")
    assert not await store.jobs.remove("summary", ANN, "soon")
    assert await store.jobs.remove("title", ANN, "soon")
    assert await keys(store) == ["ben", "late"]


async def test_a_start_takes_over_what_a_dead_process_had_claimed(store: Store, reopen: Reopen) -> None:
    for key in ("done", "cut off", "waiting", "retried"):
        await store.jobs.add(job(key))
    await store.jobs.done(await claimed(store))
    cut_off = await claimed(store)
    await store.jobs.retry(await claimed(store), at=NOW + 40)
    again = await reopen()
    assert await again.jobs.break_leases() == 1
    assert await again.jobs.break_leases() == 0
    first = await claimed(again)
    assert (first.key, first.attempts, first.fence > cut_off.fence) == ("cut off", 2, True)
    assert (await claimed(again)).key == "retried"
    assert await again.jobs.next_ready("title") == NOW + 40


async def test_a_turn_and_its_jobs_are_committed_together_or_not_at_all(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    commit = replace(turn(accepted.seq, record("assistant")), jobs=(job("a", n=1), job("b")))
    broken = replace(commit, jobs=(job("c"), job("d", bad=object())))
    with pytest.raises(StorageError, match="plain JSON"):
        await store.commit_turn(lease, broken)
    assert await keys(store) == []
    await store.commit_turn(lease, commit)
    with pytest.raises(AlreadyDone):
        await store.commit_turn(lease, replace(commit, jobs=(job("e"),)))
    assert await keys(store) == ["a", "b"]


async def test_a_closed_store_refuses_every_call(store: Store) -> None:
    await store.jobs.add(job())
    held = await claimed(store)
    await store.close()
    for call in (
        store.jobs.add(job("2")),
        store.jobs.claim("title", now=NOW, until=NOW),
        store.jobs.done(held),
        store.jobs.listed(limit=1),
    ):
        with pytest.raises(StorageError):
            await call


async def test_a_changed_job_is_due_at_another_time_and_a_claim_of_it_ends(store: Store) -> None:
    await store.jobs.add(job("1", owner=ANN, n=1))
    held = await claimed(store)
    assert await store.jobs.change("title", ANN, "1", due=NOW + 50, body={"n": 2})
    assert not await store.jobs.done(held)
    assert not await store.jobs.retry(held, at=NOW)
    assert await store.jobs.claim("title", now=NOW + 49, until=NOW + 99) is None
    found = await claimed(store, at=NOW + 50)
    assert (found.body, found.due, found.attempts) == ({"n": 2}, NOW + 50, 1)


async def test_only_an_open_job_of_its_owner_is_changed(store: Store) -> None:
    await store.jobs.add(job("1", owner=ANN))
    assert not await store.jobs.change("title", BEN, "1", due=NOW, body={})
    assert not await store.jobs.change("title", ANN, "2", due=NOW, body={})
    await store.jobs.give_up(await claimed(store), error="no")
    assert not await store.jobs.change("title", ANN, "1", due=NOW, body={})


async def test_all_open_jobs_of_a_kind_are_listed_in_the_order_in_which_they_came(store: Store) -> None:
    await store.jobs.add(job("2", owner=ANN, n=1))
    await store.jobs.add(job("1", owner=BEN, in_s=-50, n=2))
    await store.jobs.add(job("3", kind="summary"))
    await store.jobs.give_up(await claimed(store, at=NOW - 10), error="no")
    await store.jobs.add(job("4", owner=BEN, n=3))
    assert [(one.key, one.owner, one.body) for one in await store.jobs.all_of("title")] == [
        ("2", ANN, {"n": 1}),
        ("4", BEN, {"n": 3}),
    ]


def entry(**body: Any) -> NewEntry:
    return NewEntry(
        dedupe_key="k", thread="web:site:room", message_id="m", kind="message", body=body, received_at=NOW
    )


async def test_an_entry_is_accepted_together_with_what_it_changes(store: Store, reopen: Reopen) -> None:
    await store.jobs.add(job("1", owner=ANN, n=1))
    await store.jobs.add(job("2", owner=ANN, n=1))
    changed = [job("1", owner=ANN, in_s=9, n=2), job("2", owner=BEN, n=2), job("gone", owner=ANN, n=2)]
    accepted = await store.accept_with(entry(), changed)
    assert (accepted.duplicate, accepted.message_id) == (False, "m")
    store = await reopen()
    kept = [(one.key, one.due, one.body) for one in await store.jobs.all_of("title")]
    assert kept == [("1", NOW + 9, {"n": 2}), ("2", NOW, {"n": 1})]
    assert (await store.accept_with(entry(), [])).duplicate


async def test_an_entry_that_cannot_be_stored_changes_no_job(store: Store) -> None:
    await store.jobs.add(job("1", owner=ANN, n=1))
    with pytest.raises(StorageError):
        await store.accept_with(entry(n=object()), [job("1", owner=ANN, n=2)])
    with pytest.raises(StorageError):
        await store.accept_with(entry(), [job("1", owner=ANN, n=object())])
    assert [one.body for one in await store.jobs.all_of("title")] == [{"n": 1}]
    assert await store.open_threads() == ()
