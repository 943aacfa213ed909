"""Search in what was said: its own person's private threads, on every store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.storage.identities import Identity
from gateway.storage.jobs import NewJob
from gateway.storage.ports import NewEntry, NewRecord, Store, TurnCommit
from tests.contracts.store_values import NOW, lease_on, reply, sender

ANN = Identity(channel="telegram", account="main", user="ann")
BEN = Identity(channel="telegram", account="main", user="ben")


async def say(
    store: Store, text: str, *, chat: str = "a", author: str = "ann", session: str = "ses", **more: bool | str
) -> int:
    """A message with an answer that repeats it; its outbox row."""
    thread = f"telegram:main:{chat}"
    lease = await lease_on(store, thread)
    key = f"{chat}-{text}-{author}"
    body = {"native_id": key, "author": author, "text": text, **more}
    entry = NewEntry(
        dedupe_key=key, thread=thread, message_id=key, kind="message", body=body, received_at=NOW
    )
    accepted = await store.accept(entry)
    said = NewRecord(kind="user", session_id=session, message_id=key, body={"text": text}, at=NOW)
    answer = replace(said, kind="assistant", body={"text": f"You said: {text}"}, at=NOW + 1)
    commit = TurnCommit(
        seq=accepted.seq,
        outcome="answered",
        records=(said, answer),
        outbox=(reply(key, message=key),),
        at=NOW,
    )
    (row_id,) = (await store.commit_turn(lease, commit)).outbox_ids
    return row_id


async def found(store: Store, words: str, *people: Identity, limit: int = 10) -> list[str]:
    return [said.text for said in await store.search.find(words, people or (ANN,), limit=limit)]


async def test_words_are_found_by_their_beginning_in_any_case_and_without_accents(store: Store) -> None:
    await say(store, "Ein grüner TEE, bitte")
    await say(store, "coffee")
    for words in ("tee", "GRUN te", "grüner", "tee, ein"):
        assert await found(store, words) == ["You said: Ein grüner TEE, bitte", "Ein grüner TEE, bitte"]
    assert await found(store, "ee") == []
    assert await found(store, "tee coffee") == []
    await say(store, "Straße")
    assert len(await found(store, "straß")) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("저는 서울에서 고양이를 키워요", "고양이"),
        ("我的妹妹住在上海", "我的妹妹"),
        ("がっこうへ行きます", "がっこう"),
        ("パーティーに行く", "パーティー"),
        ("नमस्ते दुनिया", "नमस्ते"),
        ("Ελληνική καλημέρα", "ΚΑΛΗΜΕΡΑ"),
        ("Ёлка в лесу", "ёлка"),
        ("שָׁלוֹם לכולם", "שלום"),
        ("مَرْحَبًا بالجميع", "مرحبا"),
        ("tiếng Việt", "tieng viet"),
    ],
)
async def test_words_of_every_script_are_found(store: Store, text: str, words: str) -> None:
    await say(store, text)
    assert await found(store, words) == [f"You said: {text}", text]
    assert await found(store, "tea") == []


@pytest.mark.parametrize(
    "words", ["", "  ", "*", '"', "'; DROP TABLE said", "text:tee", "tee OR coffee", "-"]
)
async def test_no_words_and_the_marks_of_a_query_language_find_nothing_and_break_nothing(
    store: Store, words: str
) -> None:
    await say(store, "tee")
    assert await found(store, words) == []
    assert len(await found(store, "tee")) == 2


async def test_what_is_said_after_a_search_is_found_by_the_next_one_newest_first(store: Store) -> None:
    await say(store, "tea one")
    assert len(await found(store, "tea")) == 2
    await say(store, "tea two")
    assert await found(store, "tea", limit=3) == ["You said: tea two", "tea two", "You said: tea one"]


async def test_only_threads_in_which_the_person_alone_writes_in_private_are_read(store: Store) -> None:
    await say(store, "tea a")
    await say(store, "tea other chat", chat="a2")
    await say(store, "tea of ben", chat="b", author="ben")
    await say(store, "tea in a room", chat="room", private=False)
    await say(store, "tea shared", chat="c")
    await say(store, "tea shared too", chat="c", author="ben")
    mine = {"tea a", "tea other chat"}
    assert {text.removeprefix("You said: ") for text in await found(store, "tea")} == mine
    both = await found(store, "tea", ANN, BEN)
    assert {text.removeprefix("You said: ") for text in both} == {*mine, "tea of ben"}
    assert await found(store, "tea", Identity(channel="telegram", account="second", user="ann")) == []
    assert await found(store, "tea", replace(ANN, user="an")) == []


async def test_what_is_off_the_record_or_forgotten_is_not_found(store: Store) -> None:
    lease = await lease_on(store, "telegram:main:a")
    begun = NewRecord(kind="session", session_id="otr", message_id="x", body={"mode": "otr"}, at=NOW)
    await store.append(lease, [begun])
    await say(store, "tea secret", session="otr")
    row_id = await say(store, "tea forgotten")
    assert len(await found(store, "tea")) == 2
    await store.mark_sent(await sender(store, "telegram:main:a"), row_id, "native", NOW, forget=True)
    assert await found(store, "tea") == []


async def test_of_given_threads_the_newest_message_with_the_words_is_found(store: Store) -> None:
    await say(store, "green tea")
    await say(store, "black tea")
    await say(store, "coffee", chat="a2")
    await say(store, "tea of ben", chat="b", author="ben")
    lease = await lease_on(store, "telegram:main:o")
    begun = NewRecord(kind="session", session_id="otr", message_id="x", body={"mode": "otr"}, at=NOW)
    await store.append(lease, [begun])
    await say(store, "tea secret", chat="o", session="otr")
    threads = [f"telegram:main:{chat}" for chat in ("a", "a2", "o", "none")]
    newest = await store.search.newest_in("TEA", threads)
    assert {key: said.text for key, said in newest.items()} == {"telegram:main:a": "You said: black tea"}
    assert newest["telegram:main:a"].thread == "telegram:main:a"
    assert await store.search.newest_in("tea coffee", threads) == {}
    assert await store.search.newest_in("tea", ()) == {}
    assert await store.search.newest_in("'*", threads) == {}


async def test_a_deleted_conversation_is_not_found_before_it_is_erased(store: Store) -> None:
    await say(store, "tea kept")
    await say(store, "tea deleted", chat="a2")
    thread = "telegram:main:a2"
    await store.page.chats.begin_deletion(thread, NewJob(kind="erasure", key=thread, due=NOW))
    assert await found(store, "tea") == ["You said: tea kept", "tea kept"]
