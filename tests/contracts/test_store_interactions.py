"""Pending interactions, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gateway.storage.ports import AnswerStatus, Store
from pipeline.domain.errors import StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import NOW, OTHER, THREAD, interaction


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


async def test_a_refused_answer_does_not_use_the_interaction_up(store: Store) -> None:
    await store.open_interaction(interaction())
    for user, choice in (("eve", "allow"), ("ann", "maybe")):
        await store.answer_interaction("act-1", thread=THREAD, user=user, choice=choice, now=NOW)
    answer = await store.answer_interaction("act-1", thread=THREAD, user="ann", choice="allow", now=NOW)
    assert answer == "accepted"


async def test_no_allowed_user_means_nobody(store: Store) -> None:
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
