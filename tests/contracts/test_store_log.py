"""The per-thread log, on every store.

Covers: gateway/storage/json_bodies.py.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from gateway.storage.ports import VISIBLE_KINDS, NewRecord, Store
from pipeline.domain.errors import FenceLost, StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import NOW, OTHER, THREAD, accepted_with_lease, lease_on, record, turn


async def _filled(store: Store) -> tuple[int, ...]:
    lease = await lease_on(store)
    return await store.append(
        lease,
        [
            record("session", message="", session="ses-1"),
            record("user", message="msg-1"),
            record("step", message="msg-1", node="agent"),
            record("assistant", message="msg-1"),
            record("session", message="", session="ses-2"),
            record("user", message="msg-2", session="ses-2"),
            record("step", message="msg-2", session="ses-2"),
            record("error", message="msg-2", session="ses-2"),
        ],
    )


async def test_records_come_back_as_they_were_appended(store: Store) -> None:
    lease = await lease_on(store)
    ids = await store.append(lease, [record("user", text="hi ü 🙂"), record("step", n={"a": [1, None]})])
    first, second = await store.read_log(THREAD)
    assert (first.id, second.id) == ids
    assert (first.thread, first.kind, first.session_id, first.message_id) == (
        THREAD,
        "user",
        "ses-1",
        "msg-1",
    )
    assert (first.body, first.at) == ({"text": "hi ü 🙂"}, NOW)
    assert (second.kind, second.body) == ("step", {"n": {"a": [1, None]}})


async def test_ids_grow_over_the_whole_store(store: Store, reopen: Reopen) -> None:
    ids: list[int] = []
    for thread in (THREAD, OTHER, THREAD):
        ids += await store.append(await lease_on(store, thread), [record("step"), record("step")])
    follower = await reopen()
    ids += await follower.append(await lease_on(follower, OTHER), [record("step")])
    assert ids == sorted(set(ids))
    assert [row.id for row in await follower.read_log(THREAD)] == ids[:2] + ids[4:6]


async def test_appends_that_no_one_awaited_yet_keep_their_order(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    queued = [store.append(lease, [record("step", n=number)]) for number in range(30)]
    await store.commit_turn(lease, turn(accepted.seq, record("assistant", n=30)))
    assert all(future.done() for future in queued)
    assert [row.body["n"] for row in await store.read_log(THREAD)] == list(range(31))


async def test_a_users_message_is_recorded_once(store: Store) -> None:
    lease = await lease_on(store)
    (first,) = await store.append(lease, [record("user", text="once")])
    again = await store.append(lease, [record("user", text="twice"), record("step"), record("step")])
    assert again[0] == first
    assert len(set(again)) == 3
    assert [row.body.get("text") for row in await store.read_log(THREAD, kinds=["user"])] == ["once"]


async def test_each_record_that_is_added_together_has_its_own_id(store: Store) -> None:
    lease = await lease_on(store)
    (known,) = await store.append(lease, [record("user", message="m1", n=0)])
    # The record that exists is in the middle, beside another person's new one, among more than a few.
    for users in (("m1",), ("m1", "m2"), ("m2", "m1", "m3")):
        new = [record("step", n=n) for n in range(4)]
        new += [record("user", message=message, n=10) for message in users]
        new += [record("step", n=n) for n in range(4, 7)]
        ids = await store.append(lease, new)
        assert ids[4 + users.index("m1")] == known
        rows = {row.id: row for row in await store.read_log(THREAD)}
        expected = [(one.kind, one.message_id) for one in new]
        assert [(rows[one].kind, rows[one].message_id) for one in ids] == expected
        assert [rows[one].body["n"] for one in ids if rows[one].kind == "step"] == list(range(7))


async def test_the_same_message_id_in_two_threads_is_two_messages(store: Store) -> None:
    for thread in (THREAD, OTHER):
        await store.append(await lease_on(store, thread), [record("user", text=thread)])
    assert [row.body for row in await store.read_log(OTHER)] == [{"text": OTHER}]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"kinds": VISIBLE_KINDS}, [0, 1, 3, 4, 5, 7]),
        ({"kinds": ["step"]}, [2, 6]),
        ({"kinds": []}, []),
        ({"session_id": "ses-2"}, [4, 5, 6, 7]),
        ({"session_id": "ses-2", "kinds": ["user", "assistant"]}, [5]),
        ({"session_id": "nothing"}, []),
        ({"message_id": "msg-1"}, [1, 2, 3]),
        ({"message_id": "msg-1", "kinds": ["step"], "session_id": "ses-1"}, [2]),
        ({"limit": 3}, [5, 6, 7]),
        ({"limit": 0}, []),
        ({"limit": 100}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"limit": 2, "kinds": ["session", "user"]}, [4, 5]),
    ],
)
async def test_reading_filters_and_keeps_the_newest(
    store: Store, filters: dict[str, Any], expected: list[int]
) -> None:
    ids = await _filled(store)
    found = await store.read_log(THREAD, **filters)
    assert [row.id for row in found] == [ids[index] for index in expected]


async def test_reading_continues_after_an_id(store: Store) -> None:
    ids = await _filled(store)
    assert [row.id for row in await store.read_log(THREAD, after=ids[4])] == list(ids[5:])
    newest = await store.read_log(THREAD, after=ids[4], limit=2)
    assert [row.id for row in newest] == list(ids[6:])
    assert await store.read_log(THREAD, after=ids[-1]) == ()
    assert await store.read_log("no one") == ()


async def test_the_current_session_is_that_of_the_newest_session_record(store: Store) -> None:
    assert await store.current_session(THREAD) is None
    lease = await lease_on(store)
    await store.append(lease, [record("user", session="ses-0")])
    assert await store.current_session(THREAD) is None
    await store.append(lease, [record("session", session="ses-1"), record("session", session="ses-2")])
    await store.append(lease, [record("step", session="ses-1")])
    assert await store.current_session(THREAD) == "ses-2"
    assert await store.current_session(OTHER) is None


async def test_a_body_changed_after_the_call_is_stored_as_it_was(store: Store) -> None:
    lease = await lease_on(store)
    body: dict[str, Any] = {"list": [1]}
    future = store.append(lease, [NewRecord(kind="step", session_id="s", message_id="m", body=body, at=NOW)])
    body["list"].append(2)
    await future
    (first,) = await store.read_log(THREAD)
    first.body["list"].append(3)
    (second,) = await store.read_log(THREAD)
    assert second.body == {"list": [1]}


async def test_an_append_returns_a_future_even_when_it_cannot_work(store: Store) -> None:
    lease = await lease_on(store)
    unfit = store.append(lease, [record("step", x=object())])
    with pytest.raises(StorageError, match="plain JSON data"):
        await unfit
    await store.close()
    late = store.append(lease, [record("step")])
    with pytest.raises(StorageError, match="closed"):
        await late


async def test_a_failed_append_that_no_one_awaits_is_one_log_line_and_no_complaint(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    stale = await lease_on(store)
    await lease_on(store)
    dropped = store.append(stale, [record()])
    with pytest.raises(FenceLost):
        await store.append(stale, [record()])
    del dropped
    gc.collect(1)  # the oldest objects are those of the whole run
    assert complaints == []
    assert sum("append to thread" in line for line in caplog.messages) == 2
    assert await store.read_log(THREAD) == ()
