"""Feedback on every store: one value for each person and answer, and what a platform's message shows."""

from __future__ import annotations

from dataclasses import replace

from gateway.storage.feedback import Feedback
from gateway.storage.ports import NewOutboxRow, SentPart, Store, TurnCommit
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import accepted_with_lease, record, sender, turn

CHAT = "telegram:mainbot:-1001234"
UP = Feedback(
    message_id="msg-1",
    thread=f"{CHAT}:77",
    channel="telegram",
    account="mainbot",
    user="ann",
    name="Ann\ud800",
    value="up",
    run_id="run-1",
    agent="support",
    at=100.0,
)
DOWN = replace(UP, value="down", at=110.0)


async def _values(store: Store) -> list[tuple[str, str]]:
    return [(one.user, one.value) for one in await store.feedback.listed(limit=10)]


async def test_feedback_is_stored_once_changed_and_removed(store: Store, reopen: Reopen) -> None:
    book = store.feedback
    assert await book.give(UP)
    assert not await book.give(replace(UP, at=101.0)), "a redelivery changes nothing"
    assert await book.give(DOWN)
    assert not await book.take_back(replace(UP, at=120.0)), "a value that was replaced cannot be removed"
    assert await book.give(replace(UP, user="ben", at=50.0))
    again = (await reopen()).feedback
    found = await again.listed(limit=10)
    assert [(one.user, one.value, one.at) for one in found] == [
        ("ann", "down", 110.0),
        ("ben", "up", 50.0),
    ]
    assert (found[0].run_id, found[0].agent, found[0].name) == ("run-1", "support", "Ann?")
    assert await again.listed(since=60.0, limit=10) == found[:1]
    assert await again.listed(limit=1) == found[:1]
    assert await again.of_thread(UP.thread) == {"msg-1": "down"}, "the newest of an answer"
    assert await again.of_thread(f"{CHAT}:78") == {}
    assert await again.take_back(replace(DOWN, at=130.0))
    assert not await again.take_back(replace(DOWN, at=131.0))
    assert [one.user for one in await again.listed(limit=10)] == ["ben"]


async def test_an_older_reaction_that_arrives_later_changes_nothing(store: Store) -> None:
    book = store.feedback
    assert await book.give(DOWN)
    assert not await book.give(UP)
    assert not await book.take_back(replace(DOWN, at=105.0))
    assert await _values(store) == [("ann", "down")]
    other = replace(UP, user="ben")
    assert not await book.take_back(replace(other, at=105.0)), "its reaction has not arrived yet"
    assert not await book.give(other)
    assert await book.of_thread(UP.thread) == {"msg-1": "down"}


async def _sent(store: Store, key: str, receipt: str) -> None:
    accepted, lease = await accepted_with_lease(store, key)
    body = {"role": "assistant", "author": "ann"}
    row = NewOutboxRow(key=f"msg-{key}", message_id=f"msg-{key}", body=body, created_at=1.0)
    done: TurnCommit = replace(turn(accepted.seq, record("assistant", message=f"msg-{key}")), outbox=(row,))
    (outbox_id,) = (await store.commit_turn(lease, done)).outbox_ids
    if receipt:
        await store.mark_sent(await sender(store), outbox_id, receipt, 2.0)
    await store.release_lease(lease)


async def test_the_reply_that_a_message_shows_is_found_in_its_chat(store: Store) -> None:
    await _sent(store, "1", "5,6,7")
    await _sent(store, "2", "16")
    await _sent(store, "3", "")
    book = store.feedback
    for native_id in ("5", "6", "7"):
        found = await book.reply_shown_by(CHAT, native_id)
        assert found is not None
        assert (found.message_id, found.thread, found.author, found.role) == (
            "msg-1",
            f"{CHAT}:77",
            "ann",
            "assistant",
        )
    assert await book.reply_shown_by(CHAT, "1") is None, "not a part of another id"
    assert await book.reply_shown_by("telegram:mainbot:-100123", "5") is None
    assert await book.reply_shown_by("telegram:other:-1001234", "5") is None
    found = await book.reply_to("msg-3")
    assert found is not None
    assert found.author == "ann"
    assert await book.reply_to("msg-4") is None


async def test_the_message_of_a_question_is_found_while_its_turn_runs(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store, "1")
    account = await sender(store)
    await store.record_sent_part(account, "msg-1", SentPart(part=512, native_id="9", final=True, at=1.0))
    await store.record_sent_part(account, "msg-1", SentPart(part=0, native_id="8", final=False, at=1.0))
    found = await store.feedback.part_shown_by(CHAT, "9")
    assert found is not None
    assert (found.thread, found.part) == (f"{CHAT}:77", 512)
    assert await store.feedback.part_shown_by(CHAT, "8") is None, "a preview shows no question"
    assert await store.feedback.part_shown_by("telegram:mainbot:5", "9") is None
    await store.commit_turn(lease, turn(accepted.seq, record("assistant", message="msg-1")))
    assert await store.feedback.part_shown_by(CHAT, "9") is None
