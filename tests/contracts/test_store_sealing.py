"""What is off the record is sealed by a key of its message, on every store, and lost with it.

Covers: gateway/storage/sealing.py, gateway/storage/memory/seals.py, gateway/storage/sqlite/seals.py,
gateway/storage/postgres/seals.py, gateway/storage/postgres/seal_tables.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from gateway.storage.inbox_items import UnreadableItem
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Interaction, Lease, NewEntry, Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.sealing import is_lost, new_key, opened, sealed
from tests.contracts.conftest import Reopen
from tests.contracts.store_values import (
    NOW,
    OTHER,
    THREAD,
    accepted_with_lease,
    entry,
    interaction,
    lease_on,
    record,
    reply,
    sender,
    turn,
)

SECRET = "zebrafish"
Keys = Callable[[], Awaitable[Mapping[str, bytes]]]
LoseKeys = Callable[[], Awaitable[None]]


@pytest.fixture
def keys(store: Store, tmp_path: Path) -> Keys:
    """Reads the keys that the store keeps, by the names they have."""

    async def read() -> Mapping[str, bytes]:
        if isinstance(store, MemoryStore):
            return dict(store._keys)
        if isinstance(store, PostgresStore):
            rows = await store.database.fetch("SELECT name, key FROM seal_keys")
            return {row["name"]: row["key"] for row in rows}
        with sqlite3.connect(tmp_path / "store.db") as db:
            found = dict(db.execute("SELECT name, key FROM seal_keys").fetchall())
        db.close()
        return found

    return read


@pytest.fixture
def lose_keys(store: Store, tmp_path: Path) -> LoseKeys:
    """Takes all keys away, as a crash of Postgres does."""

    async def lose() -> None:
        if isinstance(store, MemoryStore):
            store._keys.clear()
        elif isinstance(store, PostgresStore):
            connection = await asyncpg.connect(store.url)
            await connection.execute("TRUNCATE parlour.seal_keys")
            await connection.close()
        else:
            db = sqlite3.connect(tmp_path / "store.db")
            with db:
                db.execute("DELETE FROM seal_keys")
            db.close()

    return lose


def said(key: str, *, thread: str = THREAD) -> NewEntry:
    words = {"native_id": key, "author": "ada", "name": "Ada Lovelace", "text": SECRET}
    return entry(key, thread=thread, body=words)


async def off_the_record(store: Store, thread: str = THREAD) -> Lease:
    """Take the thread off the record; the lease on it."""
    accepted = await store.accept(replace(entry("otr", thread=thread), seals=True))
    lease = await lease_on(store, thread)
    begins = record("session", message="msg-otr", session="ses-off", mode="otr", text="off the record")
    await store.commit_turn(lease, replace(turn(accepted.seq, begins), mode="otr", outcome="command"))
    return lease


async def answered(store: Store, lease: Lease, seq: int, name: str) -> int:
    """Commit an answer that is sealed; the id of its outbox row."""
    words = (record("assistant", message=name, session="ses-off", text=f"about {SECRET}"),)
    whole = turn(seq, *words, outbox=(reply(name, message=name),))
    left = {"native_id": "n"}
    committed = await store.commit_turn(
        lease, replace(whole, sealed=True, body=left, forget_session="ses-off")
    )
    return committed.outbox_ids[0]


async def test_on_the_record_nothing_is_sealed(store: Store, keys: Keys) -> None:
    accepted = await store.accept(said("1"))
    (waiting,) = await store.open_entries(THREAD)
    assert (accepted.sealed, waiting.sealed, await keys()) == (False, False, {})


async def test_an_entry_off_the_record_is_sealed_and_read_as_it_was(store: Store, keys: Keys) -> None:
    await off_the_record(store)
    accepted = await store.accept(said("1"))
    assert accepted.sealed
    (waiting,) = await store.open_entries(THREAD)
    assert (waiting.body, waiting.sealed) == (said("1").body, True)
    assert await store.next_entry(THREAD) == waiting
    assert (await store.newest_entries(limit=1))[0] == (THREAD, said("1").body)
    assert list(await keys()) == ["msg-1"]
    assert (await store.accept(said("1"))).duplicate


async def test_another_thread_is_not_sealed(store: Store) -> None:
    await off_the_record(store)
    assert not (await store.accept(said("1", thread=OTHER))).sealed


async def test_what_waits_behind_the_command_is_sealed_too(store: Store) -> None:
    await store.accept(replace(entry("otr"), seals=True))
    first, second = await store.accept(said("1")), await store.accept(said("2"))
    assert (first.sealed, second.sealed) == (True, True)


async def test_an_entry_that_an_answer_enqueues_is_sealed(store: Store, keys: Keys) -> None:
    await off_the_record(store)
    await store.open_interaction(interaction())
    status = await store.answer_interaction(
        "act-1", thread=THREAD, user="ann", choice="allow", now=NOW, entry=said("1")
    )
    (waiting,) = await store.open_entries(THREAD)
    assert (status, waiting.sealed, waiting.body) == ("accepted", True, said("1").body)
    accepted = await store.accept_with(said("2"), ())
    assert accepted.sealed
    assert sorted(await keys()) == ["act-1", "msg-1", "msg-2"]


async def test_a_new_session_on_the_record_ends_it(store: Store) -> None:
    lease = await off_the_record(store)
    accepted = await store.accept(entry("new"))
    begins = record("session", message="msg-new", session="ses-on")
    await store.commit_turn(lease, replace(turn(accepted.seq, begins), mode="normal", outcome="command"))
    assert not (await store.accept(said("1"))).sealed


async def test_an_answer_is_sealed_until_it_is_sent(store: Store, keys: Keys) -> None:
    lease = await off_the_record(store)
    accepted = await store.accept(said("1"))
    row = await answered(store, lease, accepted.seq, "msg-1")
    first = await keys()
    assert list(first) == ["msg-1"]
    texts = [one.body["text"] for one in await store.read_log(THREAD)]
    assert texts == ["off the record", f"about {SECRET}"]
    await store.mark_sent(await sender(store), row, "native", NOW, forget=True)
    assert await keys() == {}
    assert [one.body["text"] for one in await store.read_log(THREAD)] == ["off the record", ""]


async def test_the_words_of_an_entry_and_of_its_answer_have_different_keys(store: Store, keys: Keys) -> None:
    lease = await off_the_record(store)
    accepted = await store.accept(said("1"))
    before = await keys()
    await answered(store, lease, accepted.seq, "msg-1")
    assert (await keys())["msg-1"] != before["msg-1"]


async def test_an_answer_that_is_given_up_loses_its_key(store: Store, keys: Keys) -> None:
    lease = await off_the_record(store)
    accepted = await store.accept(said("1"))
    row = await answered(store, lease, accepted.seq, "msg-1")
    await store.mark_failed(await sender(store), row, "gone", forget=True)
    assert await keys() == {}


async def test_an_entry_that_is_finished_without_a_word_loses_its_key(store: Store, keys: Keys) -> None:
    lease = await off_the_record(store)
    accepted = await store.accept(said("1"))
    await store.commit_turn(lease, replace(turn(accepted.seq), body={"native_id": "1"}))
    assert await keys() == {}


async def test_a_line_that_is_not_kept_is_sealed_on_the_record_too(store: Store, keys: Keys) -> None:
    accepted, lease = await accepted_with_lease(store)
    shown = record("notice", message="msg-1", text=SECRET)
    whole = turn(accepted.seq, shown, outbox=(reply("a"),), outcome="command")
    committed = await store.commit_turn(lease, replace(whole, sealed=True))
    assert [one.body["text"] for one in await store.read_log(THREAD)] == [SECRET]
    assert list(await keys()) == ["msg-1"]
    await store.mark_sent(await sender(store), committed.outbox_ids[0], "native", NOW, forget=True)
    assert await keys() == {}


async def test_a_question_off_the_record_is_sealed_and_goes_with_its_session(
    store: Store, keys: Keys
) -> None:
    lease = await off_the_record(store)
    asked: Interaction = replace(interaction(), session_id="ses-off")
    await store.open_interaction(asked)
    assert await store.pending_interactions(THREAD, now=NOW) == (asked,)
    found = await store.interaction("act-1")
    assert found is not None
    assert found[0] == asked
    accepted = await store.accept(said("1"))
    assert sorted(await keys()) == ["act-1", "msg-1"]
    await answered(store, lease, accepted.seq, "msg-1")
    assert list(await keys()) == ["msg-1"]


async def test_what_lost_its_key_is_unreadable_and_says_whose_it_was(
    store: Store, lose_keys: LoseKeys
) -> None:
    lease = await off_the_record(store)
    accepted = await store.accept(said("1"))
    await answered(store, lease, accepted.seq, "msg-1")
    await store.accept(said("2"))
    await lose_keys()
    (waiting,) = await store.open_entries(THREAD)
    assert isinstance(waiting.item, UnreadableItem)
    assert (waiting.item.native_id, waiting.item.author.id, waiting.sealed) == ("2", "ada", True)
    (answer,) = await store.read_log(THREAD, kinds=("assistant",))
    assert (answer.body["text"], is_lost(answer.body)) == ("", True)
    assert (await store.accept(said("3"))).sealed, "the thread is off the record as before"


async def test_a_sealed_entry_survives_a_restart(store: Store, reopen: Reopen) -> None:
    await off_the_record(store)
    await store.accept(said("1"))
    again = await reopen()
    (waiting,) = await again.open_entries(THREAD)
    assert waiting.body == said("1").body
    assert (await again.accept(said("2"))).sealed


async def test_an_erased_conversation_has_no_key(store: Store, keys: Keys) -> None:
    lease = await off_the_record(store)
    await store.accept(said("1"))
    await store.page.chats.erase(THREAD, owner=lease.owner, fence=lease.fence, but_jobs="x")
    assert await keys() == {}


def test_a_sealed_body_shows_ids_alone_and_hides_its_length() -> None:
    key = new_key()
    bodies = [{**said("1").body, "text": text} for text in ("", "a" * 60)]
    short, long = (sealed(body, key) for body in bodies)
    assert short.keys() == long.keys() == {"sealed", "native_id", "author"}
    assert len(short["sealed"]) == len(long["sealed"])
    assert opened(dict(long), key) == bodies[1]


def test_another_key_opens_nothing() -> None:
    body = sealed(said("1").body, new_key())
    assert is_lost(opened(dict(body), new_key()))
    assert is_lost(opened(dict(body), None))
    assert is_lost(opened({"sealed": "no base64"}, new_key()))
