"""Speech buffers, speakers' habits and transcripts, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.storage.ports import Store
from gateway.storage.speech import ReadAloudWishes, SpeakerKey, SpeakerPreferences
from pipeline.domain.errors import StorageError
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import NOW

ANN = SpeakerKey(channel="web", account="main", user="ann")


async def test_a_buffer_replaces_what_was_kept_under_its_key(store: Store) -> None:
    await store.voices.keep_buffer("one", {"text": "hello"}, at=NOW)
    await store.voices.keep_buffer("one", {"text": "hello there", "chunks": [["a", None, 0]]}, at=NOW + 1)
    assert await store.voices.buffers() == (("one", {"text": "hello there", "chunks": [["a", None, 0]]}),)


async def test_buffers_come_longest_untouched_first(store: Store) -> None:
    for key, at in (("b", 3.0), ("a", 2.0), ("c", 1.0), ("a", 4.0), ("d", 3.0)):
        await store.voices.keep_buffer(key, {}, at=NOW + at)
    assert [key for key, _ in await store.voices.buffers()] == ["c", "b", "d", "a"]


async def test_a_dropped_buffer_is_gone_and_an_unknown_one_is_no_trouble(store: Store) -> None:
    await store.voices.keep_buffer("one", {}, at=NOW)
    await store.voices.keep_buffer("two", {}, at=NOW)
    await store.voices.drop_buffer("one")
    await store.voices.drop_buffer("never there")
    assert [key for key, _ in await store.voices.buffers()] == ["two"]


async def test_writes_take_effect_in_the_order_of_their_calls(store: Store) -> None:
    book = store.voices
    await asyncio.gather(
        *(book.keep_buffer("one", {"n": number}, at=NOW + number) for number in range(20)),
        book.drop_buffer("one"),
        book.keep_buffer("one", {"n": "last"}, at=NOW),
    )
    assert await book.buffers() == (("one", {"n": "last"}),)


@pytest.mark.parametrize("body", [{"text": object()}, {"text": float("nan")}, {"text": b"bytes"}])
async def test_what_is_no_plain_data_is_refused_and_changes_nothing(
    store: Store, body: dict[str, Any]
) -> None:
    await store.voices.keep_buffer("one", {"text": "hello"}, at=NOW)
    with pytest.raises(StorageError, match="plain JSON"):
        await store.voices.keep_buffer("one", body, at=NOW)
    with pytest.raises(StorageError, match="plain JSON"):
        await store.voices.keep_transcript("t", body, at=NOW, limit=5)
    assert await store.voices.buffers() == (("one", {"text": "hello"}),)
    assert await store.voices.transcript("t", newer_than=0) is None


async def test_no_one_reaches_into_the_store_through_a_body(store: Store) -> None:
    body = {"chunks": ["a"]}
    await store.voices.keep_buffer("one", body, at=NOW)
    await store.voices.keep_transcript("t", body, at=NOW, limit=5)
    body["chunks"].append("b")
    ((_, read),) = await store.voices.buffers()
    read["chunks"].append("c")
    assert await store.voices.buffers() == (("one", {"chunks": ["a"]}),)
    assert await store.voices.transcript("t", newer_than=0) == {"chunks": ["a"]}


async def test_text_that_utf8_cannot_hold_comes_back_as_it_was(store: Store) -> None:
    await store.voices.keep_buffer("one", {"text": "A\ud800 语音"}, at=NOW)
    assert await store.voices.buffers() == (("one", {"text": "A\ud800 语音"}),)


async def test_anyone_who_is_unknown_has_the_habits_of_everybody(store: Store) -> None:
    assert await store.voices.preferences_of(ANN) == SpeakerPreferences(
        language="", reading=ReadAloudWishes(mode="off")
    )


async def test_one_habit_does_not_change_the_other(store: Store) -> None:
    await store.voices.remember_language(ANN, "de")
    auto = ReadAloudWishes(mode="auto", speed=1.25, brief=True)
    await store.voices.want_reading(ANN, auto, command="m_1")
    on = SpeakerPreferences(language="de", reading=auto, voice_command="m_1")
    assert await store.voices.preferences_of(ANN) == on
    await store.voices.remember_language(ANN, "fr")
    assert await store.voices.preferences_of(ANN) == replace(on, language="fr")
    await store.voices.want_reading(ANN, ReadAloudWishes(), command="m_2")
    off = SpeakerPreferences(language="fr", voice_command="m_2")
    assert await store.voices.preferences_of(ANN) == off


@pytest.mark.parametrize(
    "other", [replace(ANN, channel="slack"), replace(ANN, account="second"), replace(ANN, user="ben")]
)
async def test_habits_are_one_persons_on_one_account(store: Store, other: SpeakerKey) -> None:
    await store.voices.remember_language(ANN, "de")
    await store.voices.want_reading(ANN, ReadAloudWishes(mode="on"), command="m_1")
    assert await store.voices.preferences_of(other) == SpeakerPreferences()


async def test_a_language_that_utf8_cannot_hold_is_kept_as_far_as_it_can(store: Store) -> None:
    await store.voices.remember_language(ANN, "d\ud800")
    assert (await store.voices.preferences_of(ANN)).language == "d?"


@pytest.mark.parametrize(("newer_than", "there"), [(NOW - 1, True), (NOW, False), (NOW + 1, False)])
async def test_a_transcript_is_found_while_it_is_young(store: Store, newer_than: float, there: bool) -> None:
    await store.voices.keep_transcript("sha", {"text": "hello"}, at=NOW, limit=5)
    expected = {"text": "hello"} if there else None
    assert await store.voices.transcript("sha", newer_than=newer_than) == expected


async def test_all_transcripts_are_forgotten(store: Store) -> None:
    await store.voices.keep_transcript("sha", {"text": "hello"}, at=NOW, limit=5)
    await store.voices.forget_transcripts()
    assert await store.voices.transcript("sha", newer_than=0) is None


async def test_of_many_transcripts_the_newest_stay(store: Store) -> None:
    for number in range(10):
        await store.voices.keep_transcript(str(number), {"n": number}, at=NOW + number, limit=3)
    await store.voices.keep_transcript("7", {"n": "again"}, at=NOW + 20, limit=3)
    found = [await store.voices.transcript(str(number), newer_than=0) for number in range(10)]
    assert found == [None] * 7 + [{"n": "again"}, {"n": 8}, {"n": 9}]


async def test_an_empty_transcript_is_a_transcript(store: Store) -> None:
    await store.voices.keep_transcript("sha", {}, at=NOW, limit=5)
    assert await store.voices.transcript("sha", newer_than=0) == {}


async def test_everything_about_voices_outlives_a_restart(store: Store, reopen: Reopen) -> None:
    await store.voices.keep_buffer("one", {"text": "hello"}, at=NOW)
    await store.voices.remember_language(ANN, "de")
    await store.voices.keep_transcript("sha", {"text": "hello"}, at=NOW, limit=5)
    follower = await reopen()
    assert await follower.voices.buffers() == (("one", {"text": "hello"}),)
    assert (await follower.voices.preferences_of(ANN)).language == "de"
    assert await follower.voices.transcript("sha", newer_than=0) == {"text": "hello"}


async def test_a_closed_store_says_so_and_a_book_taken_before_works_after(store: Store) -> None:
    book = store.voices
    await store.close()
    with pytest.raises(StorageError):
        await book.keep_buffer("one", {}, at=NOW)
    with pytest.raises(StorageError):
        await book.buffers()
    await store.open()
    await book.keep_buffer("one", {}, at=NOW)
    assert len(await book.buffers()) == 1
