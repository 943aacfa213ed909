"""Pending interactions, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gateway.storage.ports import AnswerStatus, Store
from pipeline.domain.errors import AlreadyDone, StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import (
    NOW,
    OTHER,
    THREAD,
    accepted_with_lease,
    entry,
    interaction,
    record,
    turn,
)


async def test_an_open_interaction_is_listed_as_it_was_given(store: Store) -> None:
    await store.open_interaction(interaction())
    assert await store.pending_interactions(THREAD, now=NOW) == (interaction(),)
    assert await store.pending_interactions(OTHER, now=NOW) == ()


async def test_of_twenty_answers_one_counts(store: Store) -> None:
    await store.open_interaction(interaction())
    answers = await asyncio.gather(
        *(
            store.answer_interaction(
                "act-1", thread=THREAD, user=("ann", "bob")[number % 2], choice="allow", now=NOW + 1
            )
            for number in range(20)
        )
    )
    assert sorted(answers) == ["accepted"] + ["already_answered"] * 19
    assert await store.pending_interactions(THREAD, now=NOW + 1) == ()


@pytest.mark.parametrize(
    ("name", "thread", "user", "choice", "after_s", "status"),
    [
        ("act-1", THREAD, "ann", "deny", 59.9, "accepted"),
        ("act-1", THREAD, "ann", "allow", 60, "expired"),
        ("act-1", THREAD, "eve", "allow", 1, "not_allowed"),
        ("act-1", OTHER, "ann", "allow", 1, "unknown"),
        ("act-1", THREAD, "ann", "ALLOW", 1, "invalid_choice"),
        ("act-1", THREAD, "ann", "", 1, "invalid_choice"),
        ("act-2", THREAD, "ann", "allow", 1, "unknown"),
    ],
)
async def test_an_answer_is_judged(
    store: Store, name: str, thread: str, user: str, choice: str, after_s: float, status: AnswerStatus
) -> None:
    await store.open_interaction(interaction())
    answer = await store.answer_interaction(name, thread=thread, user=user, choice=choice, now=NOW + after_s)
    assert answer == status


@pytest.mark.parametrize(
    ("asks", "choice", "status"),
    [
        ("words", "anything at all", "accepted"),
        ("words", "", "invalid_choice"),
        ("nothing", "anything at all", "invalid_choice"),
        ("choice", "anything at all", "invalid_choice"),
    ],
)
async def test_words_answer_only_what_asks_for_words(
    store: Store, asks: str, choice: str, status: AnswerStatus
) -> None:
    asked = replace(interaction(), options=(), body={"asks": asks})
    await store.open_interaction(asked)
    assert (await store.pending_interactions(THREAD, now=NOW))[0].asks == asks
    answer = await store.answer_interaction("act-1", thread=THREAD, user="ann", choice=choice, now=NOW + 1)
    assert answer == status


async def test_a_refused_answer_does_not_use_the_interaction_up(store: Store) -> None:
    await store.open_interaction(interaction())
    for user, choice in (("eve", "allow"), ("ann", "maybe")):
        await store.answer_interaction("act-1", thread=THREAD, user=user, choice=choice, now=NOW)
    answer = await store.answer_interaction("act-1", thread=THREAD, user="ann", choice="allow", now=NOW)
    assert answer == "accepted"


async def test_no_allowed_user_means_no_one(store: Store) -> None:
    await store.open_interaction(replace(interaction(), allowed_users=()))
    for user in ("ann", ""):
        answer = await store.answer_interaction("act-1", thread=THREAD, user=user, choice="allow", now=NOW)
        assert answer == "not_allowed"


async def test_expired_interactions_are_not_listed_and_others_come_oldest_first(store: Store) -> None:
    await store.open_interaction(interaction("late", created_at=NOW + 5))
    await store.open_interaction(interaction("early", created_at=NOW + 1))
    await store.open_interaction(replace(interaction("gone"), expires_at=NOW + 10))
    assert [row.id for row in await store.pending_interactions(THREAD, now=NOW + 10)] == ["early", "late"]
    assert await store.pending_interactions(THREAD, now=NOW + 60) == ()


async def test_an_id_is_used_once(store: Store) -> None:
    await store.open_interaction(interaction())
    with pytest.raises(StorageError, match="act-1"):
        await store.open_interaction(interaction(thread=OTHER))
    assert await store.pending_interactions(OTHER, now=NOW) == ()


async def test_an_answer_is_remembered_over_a_restart(store: Store, reopen: Reopen) -> None:
    await store.open_interaction(interaction("act-1"))
    await store.open_interaction(interaction("act-2"))
    await store.answer_interaction("act-1", thread=THREAD, user="ann", choice="allow", now=NOW)
    follower = await reopen()
    again = await follower.answer_interaction("act-1", thread=THREAD, user="bob", choice="deny", now=NOW)
    assert again == "already_answered"
    assert await follower.pending_interactions(THREAD, now=NOW) == (interaction("act-2"),)


async def test_an_interaction_is_opened_with_the_turn_that_asks(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    commit = replace(turn(accepted.seq, record("assistant")), interactions=(interaction(),))
    await store.commit_turn(lease, commit)
    assert await store.pending_interactions(THREAD, now=NOW) == (interaction(),)


async def test_a_turn_that_is_not_committed_asks_nothing(store: Store) -> None:
    accepted, lease = await accepted_with_lease(store)
    await store.commit_turn(lease, turn(accepted.seq, record("assistant")))
    again = replace(turn(accepted.seq, record("assistant")), interactions=(interaction(),))
    with pytest.raises(AlreadyDone):
        await store.commit_turn(lease, again)
    assert await store.pending_interactions(THREAD, now=NOW) == ()


async def test_a_turn_that_asks_again_leaves_the_question_as_it_is(store: Store) -> None:
    await store.open_interaction(interaction("act-1"))
    await store.open_interaction(interaction("act-2"))
    await store.answer_interaction("act-1", thread=THREAD, user="ann", choice="allow", now=NOW)
    accepted, lease = await accepted_with_lease(store)
    asked = (interaction("act-1"), replace(interaction("act-2"), options=("other",)), interaction("act-3"))
    await store.commit_turn(lease, replace(turn(accepted.seq, record("assistant")), interactions=asked))
    pending = await store.pending_interactions(THREAD, now=NOW)
    assert pending == (interaction("act-2"), interaction("act-3"))
    again = await store.answer_interaction("act-1", thread=THREAD, user="ann", choice="deny", now=NOW)
    assert again == "already_answered"


async def test_an_accepted_answer_brings_its_entry_and_any_other_none(store: Store, reopen: Reopen) -> None:
    await store.open_interaction(interaction())
    continuing = replace(entry("answer", body={"choice": "allow"}), kind="approval")
    answers: list[AnswerStatus] = [
        await store.answer_interaction(
            "act-1", thread=THREAD, user=user, choice="allow", now=NOW, entry=continuing
        )
        for user in ("eve", "ann", "bob")
    ]
    assert answers == ["not_allowed", "accepted", "already_answered"]
    follower = await reopen()
    (waiting,) = await follower.open_entries(THREAD)
    assert (waiting.kind, waiting.message_id, waiting.body) == ("approval", "msg-answer", {"choice": "allow"})


async def test_an_answer_that_cannot_be_stored_does_not_use_the_interaction_up(store: Store) -> None:
    await store.open_interaction(interaction())
    unfit = replace(entry("answer", body={"choice": object()}), kind="approval")
    with pytest.raises(StorageError):
        await store.answer_interaction(
            "act-1", thread=THREAD, user="ann", choice="allow", now=NOW, entry=unfit
        )
    assert await store.pending_interactions(THREAD, now=NOW) == (interaction(),)


async def test_an_interaction_is_found_again_with_its_answer_after_a_restart(
    store: Store, reopen: Reopen
) -> None:
    await store.open_interaction(interaction())
    assert await store.interaction("act-1") == (interaction(), None)
    await store.answer_interaction("act-1", thread=THREAD, user="ann", choice="deny", now=NOW + 1)
    assert await store.interaction("act-1") == (interaction(), "deny")
    again = await reopen()
    assert await again.interaction("act-1") == (interaction(), "deny")
    assert await again.interaction("act-2") is None


async def test_unanswered_interactions_are_due_by_their_kind_soonest_first(store: Store) -> None:
    assert await store.expiries.next_due("gate") is None
    for name, expires_at in (("later", NOW + 20), ("sooner", NOW + 10), ("open", NOW + 30)):
        await store.open_interaction(replace(interaction(name), kind="gate", expires_at=expires_at))
    await store.open_interaction(replace(interaction("other"), kind="tool", expires_at=NOW + 5))
    assert await store.expiries.next_due("gate") == NOW + 10
    assert await store.expiries.due("gate", now=NOW + 20, limit=10) == ("sooner", "later")
    assert await store.expiries.due("gate", now=NOW + 20, limit=1) == ("sooner",)


async def test_a_closed_interaction_is_due_no_more_and_has_expired_for_every_later_answer(
    store: Store, reopen: Reopen
) -> None:
    await store.open_interaction(interaction())
    assert await store.expiries.close("act-1", at=NOW + 100)
    assert not await store.expiries.close("act-1", at=NOW + 100)
    store = await reopen()
    assert await store.expiries.due("tool", now=NOW + 1_000, limit=10) == ()
    assert await store.pending_interactions(THREAD, now=NOW) == ()
    # Also by a clock that was set back since.
    answer = await store.answer_interaction("act-1", thread=THREAD, user="ann", choice="allow", now=NOW)
    assert answer == "expired"


async def test_an_answered_interaction_cannot_be_closed(store: Store) -> None:
    await store.open_interaction(interaction())
    await store.answer_interaction("act-1", thread=THREAD, user="ann", choice="allow", now=NOW)
    assert not await store.expiries.close("act-1", at=NOW + 100)
    assert await store.interaction("act-1") == (interaction(), "allow")
    assert not await store.expiries.close("unknown", at=NOW + 100)
