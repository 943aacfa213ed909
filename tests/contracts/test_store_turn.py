"""The turn commit and the outbox, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gateway.storage.ports import NewEntry, NewOutboxRow, NewRecord, SentPart, Store, TurnCommit
from gateway.storage.sizes import StoreCounts
from pipeline.domain.errors import FenceLost, StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import (
    NOW,
    OTHER,
    THREAD,
    accepted_with_lease,
    entry,
    lease_on,
    record,
    reply,
    sender,
    sent_row,
    turn,
)


async def test_a_commit_makes_records_and_replies_and_finishes_the_entry(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    committed = await store.commit_turn(
        lease,
        turn(
            accepted.seq,
            record("step"),
            record("assistant", text="hi"),
            outbox=(reply("a"), reply("b")),
        ),
    )
    assert [row.id for row in await store.read_log(THREAD)] == list(committed.record_ids)
    first, second = await store.outbox_open(THREAD)
    assert (first.id, second.id) == committed.outbox_ids
    assert (first.key, first.thread, first.message_id) == ("a", THREAD, "msg-1")
    assert (first.entry_id, first.body, first.created_at) == (
        committed.record_ids[-1],
        {"text": "an answer"},
        NOW,
    )
    assert (first.state, first.attempts, first.not_before, first.receipt, first.error) == (
        "ready",
        0,
        0.0,
        "",
        "",
    )
    assert await store.next_entry(THREAD) is None
    assert await store.counts() == StoreCounts(inbox_open=0, inbox_done=1, outbox_open=2, records=2)


async def test_a_commit_can_leave_another_body_in_the_entrys_place(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    await store.commit_turn(lease, replace(turn(accepted.seq), body={"native_id": "n1"}))
    assert await store.newest_entries(limit=1) == ((THREAD, {"native_id": "n1"}),)
    again = await store.accept(entry("1"))
    assert (again.duplicate, again.seq) == (True, accepted.seq)


async def test_a_commit_with_a_stale_fence_leaves_no_trace(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    await lease_on(store, owner="you", now=NOW + 30)
    with pytest.raises(FenceLost):
        await store.commit_turn(lease, turn(accepted.seq, record("assistant"), outbox=(reply(),)))
    assert await store.counts() == StoreCounts(inbox_open=1, inbox_done=0, outbox_open=0, records=0)


async def test_a_finished_entry_cannot_be_finished_again(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    foreign = await store.accept(entry("2", thread=OTHER))
    await store.commit_turn(lease, turn(accepted.seq, outcome="cancelled"))
    for seq in (accepted.seq, foreign.seq, 999):
        with pytest.raises(StorageError, match=str(seq)):
            await store.commit_turn(lease, turn(seq, record("assistant"), outbox=(reply(),)))
    assert await store.counts() == StoreCounts(inbox_open=1, inbox_done=1, outbox_open=0, records=0)


async def test_of_ten_commits_of_one_entry_one_happens(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    results = await asyncio.gather(
        *(
            store.commit_turn(lease, turn(accepted.seq, record("assistant"), outbox=(reply(str(number)),)))
            for number in range(10)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(result, StorageError) for result in results) == 9
    assert await store.counts() == StoreCounts(inbox_open=0, inbox_done=1, outbox_open=1, records=1)


async def test_a_reply_is_added_once_per_key(store: Store) -> None:
    first, lease = await accepted_with_lease(store, "1")
    second = await store.accept(entry("2"))
    one = await store.commit_turn(lease, turn(first.seq, record("assistant"), outbox=(reply("same"),)))
    two = await store.commit_turn(
        lease, turn(second.seq, record("assistant"), outbox=(reply("same"), reply("new")))
    )
    assert two.outbox_ids[0] == one.outbox_ids[0]
    assert [(row.key, row.entry_id) for row in await store.outbox_open()] == [
        ("same", one.record_ids[0]),
        ("new", two.record_ids[0]),
    ]


async def test_the_outbox_is_listed_by_thread_and_oldest_first(store: Store) -> None:
    ids: dict[str, list[int]] = {THREAD: [], OTHER: []}
    for number in range(6):
        thread = THREAD if number % 2 else OTHER
        accepted = await store.accept(entry(str(number), thread=thread))
        lease = await lease_on(store, thread)
        commit = turn(accepted.seq, record("assistant"), outbox=(reply(str(number)),))
        ids[thread] += (await store.commit_turn(lease, commit)).outbox_ids
    assert [row.id for row in await store.outbox_open(THREAD)] == ids[THREAD]
    assert [row.id for row in await store.outbox_open()] == sorted(ids[THREAD] + ids[OTHER])
    assert await store.outbox_open("no one") == ()


async def test_a_reply_goes_from_ready_to_sending_to_sent(store: Store) -> None:
    row_id = await sent_row(store)
    account = await sender(store)
    await store.mark_sending(account, row_id)
    (sending,) = await store.outbox_open()
    assert (sending.state, sending.attempts) == ("sending", 1)
    await store.mark_sent(account, row_id, "native-7", NOW + 1)
    assert await store.outbox_open() == ()
    sent = await store.outbox_row(row_id)
    assert sent is not None
    assert (sent.state, sent.attempts, sent.receipt) == ("sent", 1, "native-7")


async def test_a_reply_that_is_sent_at_once_begins_as_sending(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    at_once = replace(reply(), state="sending")
    await store.commit_turn(lease, turn(accepted.seq, record("assistant"), outbox=(at_once,)))
    (row,) = await store.outbox_open()
    assert (row.state, row.attempts) == ("sending", 1)


async def test_a_reply_that_counts_as_sent_on_record_begins_as_sent(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    on_record = replace(reply(), state="sent")
    committed = await store.commit_turn(lease, turn(accepted.seq, record("assistant"), outbox=(on_record,)))
    assert await store.outbox_open() == ()
    row = await store.outbox_row(committed.outbox_ids[0])
    assert row is not None
    shown = str(committed.record_ids[-1])
    assert (row.state, row.attempts, row.receipt) == ("sent", 0, shown)
    assert await store.receipts(lease.thread) == (shown,)


async def test_a_reply_can_be_tried_again_later(store: Store) -> None:
    row_id = await sent_row(store)
    account = await sender(store)
    await store.mark_sending(account, row_id)
    await store.mark_retry(account, row_id, "429 slow down", NOW + 60)
    (waiting,) = await store.outbox_open()
    assert (waiting.state, waiting.attempts) == ("ready", 1)
    assert (waiting.error, waiting.not_before) == ("429 slow down", NOW + 60)
    await store.mark_sending(account, row_id)
    await store.mark_sending(account, row_id)
    (sending,) = await store.outbox_open()
    assert (sending.state, sending.attempts) == ("sending", 3)


async def test_a_reply_that_failed_or_left_changes_no_more(store: Store) -> None:
    failed, sent = await sent_row(store, "1"), await sent_row(store, "2")
    account = await sender(store)
    await store.mark_failed(account, failed, "chat not found \ud800")
    await store.mark_sent(account, sent, "native-8", NOW)
    for row_id in (failed, sent, 999):
        for change in (
            store.mark_sending(account, row_id),
            store.mark_sent(account, row_id, "native-9", NOW),
            store.mark_retry(account, row_id, "again", NOW),
            store.mark_failed(account, row_id, "again"),
        ):
            with pytest.raises(StorageError, match=str(row_id)):
                await change
    row = await store.outbox_row(failed)
    assert row is not None
    assert (row.state, row.error) == ("failed", "chat not found ?")
    assert await store.outbox_row(999) is None


async def test_a_reply_on_its_way_is_found_after_a_restart(store: Store, reopen: Reopen) -> None:
    row_id = await sent_row(store)
    await store.mark_sending(await sender(store), row_id)
    follower = await reopen()
    (sending,) = await follower.outbox_open()
    assert (sending.id, sending.state, sending.attempts) == (row_id, "sending", 1)


async def test_a_reply_that_may_have_arrived_is_still_sending_while_it_waits(store: Store) -> None:
    row_id = await sent_row(store)
    account = await sender(store)
    await store.mark_sending(account, row_id)
    await store.mark_retry(account, row_id, "no answer", NOW + 5, maybe_sent=True)
    (waiting,) = await store.outbox_open()
    assert (waiting.state, waiting.error, waiting.not_before) == ("sending", "no answer", NOW + 5)


async def test_what_shows_a_reply_is_kept_until_the_reply_is_sent(store: Store, reopen: Reopen) -> None:
    row_id = await sent_row(store)
    key = "msg-1:answer"
    account = await sender(store)
    await store.record_sent_part(account, key, SentPart(part=1, native_id="n-2", final=False))
    await store.record_sent_part(account, key, SentPart(part=0, native_id="n-1", final=False))
    await store.record_sent_part(account, key, SentPart(part=0, native_id="n-1", final=True, at=NOW))
    await store.record_sent_part(account, "another", SentPart(part=0, native_id="n-9", final=False))
    follower = await reopen()
    assert await follower.shown(key) == (
        SentPart(part=0, native_id="n-1", final=True, at=NOW),
        SentPart(part=1, native_id="n-2", final=False),
    )
    await follower.mark_sent(await sender(follower), row_id, "n-1,n-2", NOW)
    assert await follower.shown(key) == ()
    assert len(await follower.shown("another")) == 1


async def test_the_newest_entries_are_reported_whether_finished_or_not(store: Store) -> None:
    first, lease = await accepted_with_lease(store, "1")
    await store.commit_turn(lease, turn(first.seq, record("assistant")))
    await store.accept(entry("2", thread=OTHER))
    await store.accept(entry("3"))
    newest = await store.newest_entries(limit=2)
    assert [(thread, body["text"]) for thread, body in newest] == [(THREAD, "hello 3"), (OTHER, "hello 2")]
    assert len(await store.newest_entries(limit=9)) == 3


async def test_the_threads_of_an_account_come_by_their_newest_record_and_first_those_that_wait(
    store: Store,
) -> None:
    channel, account, _ = THREAD.split(":", 2)
    older, newer, foreign = THREAD, f"{channel}:{account}:newer", f"{channel}:{account}2:c1"
    for thread in (newer, older, foreign, OTHER, newer):
        lease = await lease_on(store, thread)
        await store.append(lease, [record("assistant")])
        await store.release_lease(lease)
    waiting = f"{channel}:{account}:waits"
    await store.accept(entry("new", thread=waiting))
    await store.acquire_lease(f"{channel}:{account}:empty", "me", ttl_s=30, now=NOW)

    assert await store.threads_of(channel, account, limit=9) == (waiting, newer, older)
    assert await store.threads_of(channel, account, limit=1) == (waiting,)
    assert await store.threads_of(channel, f"{account}2", limit=9) == (foreign,)
    assert await store.threads_of(channel, "no one", limit=9) == ()


async def test_a_log_is_read_backwards_from_any_record(store: Store) -> None:
    lease = await lease_on(store)
    ids = await store.append(lease, [record("assistant", text=str(number)) for number in range(5)])
    earlier = await store.read_log(THREAD, before=ids[3], limit=2)
    assert [row.body["text"] for row in earlier] == ["1", "2"]
    assert [row.id for row in await store.read_log(THREAD, after=ids[0], before=ids[2])] == [ids[1]]
    assert await store.read_log(THREAD, before=ids[0]) == ()


async def test_what_shows_a_reply_that_was_given_up_is_forgotten(store: Store) -> None:
    row_id = await sent_row(store)
    account = await sender(store)
    await store.record_sent_part(account, "msg-1:answer", SentPart(part=0, native_id="n-1", final=False))
    await store.mark_failed(account, row_id, "the chat is gone")
    assert await store.shown("msg-1:answer") == ()


async def test_the_receipts_of_a_chat_are_those_of_its_topics_too_newest_first(store: Store) -> None:
    for number, thread in enumerate(("telegram:main:7", "telegram:main:7:1", "telegram:main:77")):
        lease = await store.acquire_lease(thread, "me", ttl_s=30, now=1.0)
        assert lease is not None
        row = NewOutboxRow(key=f"k{number}", message_id=f"m{number}", body={}, created_at=1.0)
        accepted = await store.accept(
            NewEntry(
                dedupe_key=f"d{number}",
                thread=thread,
                message_id=f"m{number}",
                kind="message",
                body={},
                received_at=1.0,
            )
        )
        said = NewRecord(kind="assistant", session_id="s", message_id=f"m{number}", body={}, at=1.0)
        commit = TurnCommit(seq=accepted.seq, outcome="answered", records=(said,), outbox=(row,), at=1.0)
        committed = await store.commit_turn(lease, commit)
        await store.mark_sending(lease, committed.outbox_ids[0])
        await store.mark_sent(lease, committed.outbox_ids[0], f"r{number}", 2.0)
    assert await store.receipts("telegram:main:7") == ("r1", "r0")
    assert await store.receipts("telegram:main:8") == ()
