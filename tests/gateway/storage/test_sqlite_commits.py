"""Group commit: shared transactions, separate fates; checkpoints; the life of the threads."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.storage.audit import NewAuditRecord
from gateway.storage.audit_check import check_audit
from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.group_commit import GroupCommit
from gateway.storage.sqlite.wal import read_wal
from gateway.storage.sqlite.worker_thread import DatabaseThread
from pipeline.domain.errors import FenceLost, StorageError
from tests.contracts.store_values import THREAD, entry, lease_on, record, turn
from tests.gateway.storage.values import bytes_written, look, submit, writer_held_back


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "store.db")
    await opened.open()
    yield opened
    await opened.close()


def _poison(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO threads (key) VALUES ('poisoned')")
    raise RuntimeError("poison")


def _breaks_at_commit(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA defer_foreign_keys = ON")
    db.execute(
        "INSERT INTO inbox (dedupe_key, thread, message_id, kind, body, received_at) "
        "VALUES ('orphan', 999, 'm', 'message', '{}', 0)"
    )


async def test_writes_of_one_pass_of_the_loop_share_one_commit(store: SqliteStore) -> None:
    commits = store.commits
    await asyncio.gather(*(store.accept(entry(str(number))) for number in range(50)))
    await asyncio.gather(*[submit(store, lambda _: None) for _ in range(300)])
    # The writer was idle before each: of 300 calls, more than a batch holds.
    assert store.commits - commits == 3


async def _is_quiet(store: SqliteStore) -> None:
    for _ in range(10):
        await submit(store, lambda _: None)


async def test_a_lone_call_is_handed_over_before_the_pass_of_the_loop_ends(store: SqliteStore) -> None:
    await _is_quiet(store)
    begun = threading.Event()
    waiting = submit(store, lambda _: begun.set())
    # The loop does nothing meanwhile.
    assert begun.wait(timeout=60)
    await waiting


async def test_calls_are_gathered_again_once_a_batch_has_several(store: SqliteStore) -> None:
    await _is_quiet(store)
    await asyncio.gather(*[submit(store, lambda _: None) for _ in range(40)])
    commits = store.commits
    await asyncio.gather(*[submit(store, lambda _: None) for _ in range(40)])
    await submit(store, lambda _: None)
    await asyncio.gather(*[submit(store, lambda _: None) for _ in range(40)])
    assert store.commits - commits == 3


async def test_a_call_made_just_before_the_end_is_answered(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store._reader.stop()
    last = submit(store, lambda _: "done")
    await store.close()
    assert last.done()
    assert await last == "done"
    with pytest.raises(StorageError, match="closed"):
        submit(store, lambda _: None)


async def test_a_call_that_waits_for_a_thread_that_cannot_start_is_refused(tmp_path: Path) -> None:
    thread = DatabaseThread("store-writer", GroupCommit(tmp_path, synchronous="FULL"))

    async def early() -> None:
        await thread.submit(lambda _: None)

    failed, refused = await asyncio.gather(thread.start(), early(), return_exceptions=True)
    assert "is a folder" in str(failed)
    assert isinstance(refused, StorageError)
    assert "closed" in str(refused)


async def test_writes_made_while_the_writer_is_busy_share_one_commit(store: SqliteStore) -> None:
    commits = store.commits
    with writer_held_back(store):
        waiting = [submit(store, lambda _: None) for _ in range(40)]
    await asyncio.gather(*waiting)
    assert store.commits - commits == 2


async def test_the_chats_that_wait_for_one_sync_share_the_next_one(store: SqliteStore) -> None:
    chats = [f"telegram:bot:{number}" for number in range(32)]
    leases = [await lease_on(store, chat) for chat in chats]
    commits = store.commits
    with writer_held_back(store):
        accepting = [asyncio.gather(store.accept(entry(chat, thread=chat), begin=True)) for chat in chats]
        await asyncio.sleep(0)
    accepted = [(await one)[0] for one in accepting]
    # One commit is the writer's that is held back; all 32 chats wait for one more.
    assert store.commits - commits == 2
    with writer_held_back(store):
        ends = [
            asyncio.gather(store.commit_turn(lease, turn(one.seq, record("assistant"))))
            for lease, one in zip(leases, accepted, strict=True)
        ]
        await asyncio.sleep(0)
    await asyncio.gather(*ends)
    assert store.commits - commits == 4


async def test_a_call_that_fails_does_not_harm_its_neighbours(store: SqliteStore) -> None:
    lease = await lease_on(store)
    await lease_on(store)
    with writer_held_back(store):
        before = submit(store, lambda db: db.execute("INSERT INTO threads (key) VALUES ('before')").rowcount)
        poison = submit(store, _poison)
        stale = store.append(lease, [record()])
        clash = submit(store, lambda db: db.execute("INSERT INTO threads (key) VALUES ('before')"))
        after = submit(store, lambda db: db.execute("INSERT INTO threads (key) VALUES ('after')").rowcount)
    outcomes = await asyncio.gather(before, poison, stale, clash, after, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int, RuntimeError, FenceLost, StorageError, int]
    keys = await store._reader.submit(lambda db: db.execute("SELECT key FROM threads ORDER BY id").fetchall())
    assert keys == [(THREAD,), ("before",), ("after",)]


async def test_a_lone_call_that_fails_takes_its_writes_back(store: SqliteStore) -> None:
    with pytest.raises(RuntimeError, match="poison"):
        await submit(store, _poison)
    assert (await store.accept(entry("1"))).seq == 1
    assert await store._reader.submit(lambda db: db.execute("SELECT key FROM threads").fetchall()) == [
        (THREAD,)
    ]


async def test_a_commit_that_fails_fails_every_call_of_it(store: SqliteStore) -> None:
    with writer_held_back(store):
        calls = [
            submit(store, lambda db: db.execute("INSERT INTO threads (key) VALUES ('lost')").rowcount),
            submit(store, _breaks_at_commit),
            submit(store, _poison),
        ]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StorageError, StorageError, RuntimeError]
    assert (await store.counts()).inbox_open == 0
    assert (await store.accept(entry("1"))).seq == 1


async def test_a_full_disk_is_reported_in_words_and_is_got_over(store: SqliteStore, tmp_path: Path) -> None:
    await store.accept(entry("small"))
    pages = await submit(store, lambda db: db.execute("PRAGMA page_count").fetchone()[0])
    await submit(store, lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    large = {"text": "x" * 100_000}
    with writer_held_back(store):
        crowd = [asyncio.gather(store.accept(entry(str(number), body=large))) for number in range(5)]
        await asyncio.sleep(0)
    for outcome in await asyncio.gather(*crowd, return_exceptions=True):
        assert isinstance(outcome, StorageError)
        assert "disk is full" in str(outcome)
        assert str(tmp_path / "store.db") in str(outcome)
    with pytest.raises(StorageError, match="disk is full"):
        await store.check_writable()
    await submit(store, lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone())
    await store.check_writable()
    assert not (await store.accept(entry("1", body=large))).duplicate
    assert (await store.counts()).inbox_open == 2


async def test_a_database_that_another_program_locks_is_reported_in_words(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await submit(store, lambda db: db.execute("PRAGMA busy_timeout = 1").fetchone())
    intruder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    intruder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="another program holds the database locked"):
        await store.accept(entry("1"))
    intruder.execute("ROLLBACK")
    intruder.close()
    assert not (await store.accept(entry("1"))).duplicate
    await store.close()


async def test_text_that_cannot_be_stored_is_refused_in_words(store: SqliteStore) -> None:
    with pytest.raises(StorageError, match="cannot be stored"):
        await store.accept(entry("\ud800"))


async def test_a_caller_that_gives_up_does_not_stop_the_writer(store: SqliteStore) -> None:
    with writer_held_back(store):
        given_up = submit(store, lambda db: db.execute("INSERT INTO threads (key) VALUES ('kept')"))
        given_up.cancel()
    assert (await store.accept(entry("1"))).seq == 1
    assert (await store._reader.submit(lambda db: db.execute("SELECT count(*) FROM threads").fetchone())) == (
        2,
    )


async def test_closing_finishes_what_was_asked_for(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    lease = await lease_on(store)
    queued = [store.append(lease, [record("step")]) for _ in range(100)]
    await asyncio.gather(store.close(), store.close())
    assert all(future.done() for future in queued)
    assert look(tmp_path / "store.db", "SELECT count(*) FROM log") == [(100,)]


async def test_closing_leaves_one_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store.accept(entry("1"))
    await store.close()
    assert _sizes(tmp_path).keys() == {"store.db"}


async def test_the_log_is_checkpointed_when_no_one_writes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", synchronous="NORMAL")
    store._writer = DatabaseThread("store-writer", store._group_commit, idle_after_s=0.001)
    await store._writer.start()
    await store._reader.start()
    wal = tmp_path / "store.db-wal"
    async with asyncio.timeout(60):
        generation = read_wal(wal)
        number = 0
        while (
            (state := read_wal(wal)) is None
            or generation is None
            or state.generation == generation.generation
        ):
            number += 1
            await store.accept(entry(str(number), body={"text": "x" * 20_000}))
            # A thread rests in real time: it is given the chance, and asked again until it took it.
            await asyncio.sleep(0.003)
    assert state.frames < 256
    # Counted over both generations, although the second has overwritten the first.
    assert number * 20_000 < bytes_written(store) < number * 30_000
    assert (await store.counts()).inbox_open == number
    await store.close()


async def test_bytes_written_counts_the_pages_of_each_write(store: SqliteStore) -> None:
    start = bytes_written(store)
    await store.accept(entry("1", body={"text": "x" * 50_000}))
    grown = bytes_written(store)
    assert 50_000 < grown - start < 60_000
    await store.accept(entry("1"))
    assert bytes_written(store) == grown


async def test_the_log_stays_bounded_while_writes_never_pause(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", synchronous="NORMAL")
    await store.open()
    for number in range(300):
        await store.accept(entry(str(number), body={"text": "x" * 100_000}))
    sizes = _sizes(tmp_path)
    await store.close()
    assert bytes_written(store) > 30_000_000
    assert sizes["store.db-wal"] < 18_000_000


def _sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in folder.iterdir()}


async def test_the_audit_continues_behind_records_that_were_rolled_back(store: SqliteStore) -> None:
    audit = store.shield.audit

    def added(detail: object) -> asyncio.Future[None]:
        return audit.append([NewAuditRecord(type="action_proposed", details={"tool": detail}, at=1.0)])

    await added("first")
    # One transaction: what fails in it takes the others with it, and they are run again.
    second, broken, third = added("second"), added(object()), added("third")
    with pytest.raises(TypeError):
        await broken
    await asyncio.gather(second, third)
    await added("fourth")
    report = await check_audit(audit)
    lines = b"".join(row.line for row in await audit.listed(limit=9))
    assert (report.records, report.damage, lines.count(b"second")) == (4, (), 1)
