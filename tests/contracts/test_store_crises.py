"""Crisis records on every store: written with the turn, once, counted by day, and deleted in time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.storage.crises import CrisisRecord
from gateway.storage.ports import Store
from pipeline.domain.errors import AlreadyDone
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import accepted_with_lease, turn

DAY_S = 86_400.0
NOW = 1_796_000_000.0
RECORD = CrisisRecord(
    id="aa",
    session="bb",
    user="telegram:main:user:ann\ud800",
    at=NOW,
    level=3,
    override="imminent_risk",
    path="override",
    reason="en.intent",
    completed=True,
    llm_failed=False,
)


async def _given(store: Store, *records: CrisisRecord) -> None:
    for number, one in enumerate(records):
        accepted, lease = await accepted_with_lease(store, f"{one.id}-{number}")
        await store.commit_turn(lease, replace(turn(accepted.seq), crisis=one))


async def test_a_record_is_written_with_its_turn_and_once(store: Store, reopen: Reopen) -> None:
    accepted, lease = await accepted_with_lease(store)
    commit = replace(turn(accepted.seq), crisis=RECORD)
    await store.commit_turn(lease, commit)
    with pytest.raises(AlreadyDone):
        await store.commit_turn(lease, replace(commit, crisis=replace(RECORD, id="cc")))
    await _given(store, RECORD)
    book = (await reopen()).crises
    assert await book.listed(limit=9) == (replace(RECORD, user="telegram:main:user:ann?"),)
    assert [(one.day, one.level, one.path, one.events) for one in await book.days()] == [
        ("2026-11-30", 3, "override", 1)
    ]


async def test_records_are_counted_by_day_level_and_path(store: Store) -> None:
    failed = replace(RECORD, id="ff", level=2, path="failed", completed=False, llm_failed=True)
    later = replace(RECORD, id="dd", at=NOW + DAY_S)
    await _given(store, RECORD, failed, replace(failed, id="gg"), later)
    days = [
        (one.day[-2:], one.level, one.path, one.events, one.llm_failures, one.completed)
        for one in await store.crises.days()
    ]
    assert days == [
        ("30", 2, "failed", 2, 2, 0),
        ("30", 3, "override", 1, 0, 1),
        ("01", 3, "override", 1, 0, 1),
    ]
    assert [one.id for one in await store.crises.listed(limit=2)] == ["dd", "gg"]


async def test_records_are_deleted_after_ninety_days_unless_they_are_kept(store: Store) -> None:
    await _given(store, RECORD, replace(RECORD, id="kept"), replace(RECORD, id="new", at=NOW + DAY_S))
    assert await store.crises.keep("kept", until=NOW + 200 * DAY_S, because="complaint")
    assert not await store.crises.keep("none", until=NOW, because="")
    assert await store.crises.prune(now=NOW + 90 * DAY_S) == 0
    assert await store.crises.prune(now=NOW + 90 * DAY_S + 1) == 1
    assert {one.id: one.kept_because for one in await store.crises.listed(limit=9)} == {
        "kept": "complaint",
        "new": None,
    }
    assert await store.crises.prune(now=NOW + 201 * DAY_S) == 2
    assert sum(one.events for one in await store.crises.days()) == 3, "counts are kept for good"


async def test_a_person_is_taken_out_of_the_records(store: Store) -> None:
    await _given(store, RECORD, replace(RECORD, id="other", user="web:page:user:ben"))
    await store.crises.forget("telegram:main:user:ann\ud800")
    assert {one.id: one.user for one in await store.crises.listed(limit=9)} == {
        "aa": None,
        "other": "web:page:user:ben",
    }


async def test_failures_of_the_classifier_are_counted_also_where_no_response_followed(store: Store) -> None:
    await store.crises.count_failure(at=NOW, level=0)
    await store.crises.count_failure(at=NOW, level=0)
    (day,) = await store.crises.days()
    assert (day.level, day.path, day.events, day.llm_failures, day.completed) == (0, "deterministic", 0, 2, 0)
