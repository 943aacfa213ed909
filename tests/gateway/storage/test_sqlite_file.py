"""The SQLite file itself: who may read it, whose it is, how it moves to a newer schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.storage.speech import ReadAloudWishes, SpeakerKey, SpeakerPreferences
from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.connection import open_writer
from gateway.storage.sqlite.migration_steps import MIGRATIONS, SAID_IN_TERMS
from gateway.storage.sqlite.migrations import APPLICATION_ID, migrate
from pipeline.domain.errors import StorageError
from tests.contracts.store_values import NOW, entry, interaction
from tests.gateway.storage.values import look


async def _refusal(path: Path) -> str:
    store = SqliteStore(path)
    with pytest.raises(StorageError) as refused:
        await store.open()
    await store.close()
    return str(refused.value)


async def test_file_and_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.accept(entry("1"))
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    await store.close()
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_a_new_file_is_brought_to_the_newest_schema(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.close()
    assert look(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert look(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert look(path, "PRAGMA journal_mode") == [("wal",)]
    assert look(path, "PRAGMA integrity_check") == [("ok",)]


def test_each_later_step_runs_once_and_keeps_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(open_writer(path, synchronous="FULL")) as db:
        db.execute("INSERT INTO threads (key) VALUES ('t:a:1')")
        steps = (*MIGRATIONS, ("ALTER TABLE threads ADD COLUMN note TEXT NOT NULL DEFAULT 'none'",))
        assert migrate(db, path, steps) == len(steps)
        assert migrate(db, path, steps) == len(steps)
        assert db.execute("SELECT key, note FROM threads").fetchall() == [("t:a:1", "none")]


async def test_a_file_of_the_schema_before_keeps_what_people_chose(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert migrate(db, path, MIGRATIONS[:5]) == 5
        db.execute("INSERT INTO speakers VALUES ('web', 'local', 'ann', 'de', 1)")
        reminder = ("rem_1", "web:local:c1", "web:local:user:ann", 1_906_459_200.5, "tea", '{"private":true}')
        db.execute("INSERT INTO reminders VALUES (?, ?, ?, ?, ?, ?)", reminder)
    store = SqliteStore(path)
    await store.open()
    ann = SpeakerKey(channel="web", account="local", user="ann")
    assert await store.voices.preferences_of(ann) == SpeakerPreferences(
        language="de", reading=ReadAloudWishes(mode="on")
    )
    await store.voices.want_reading(ann, ReadAloudWishes(), command="m_1")
    off = SpeakerPreferences(language="de", voice_command="m_1")
    assert await store.voices.preferences_of(ann) == off
    (job,) = await store.jobs.of("reminder", "web:local:user:ann")
    assert (job.key, job.thread, job.due, job.ready) == ("rem_1", "web:local:c1", reminder[3], reminder[3])
    assert (job.state, job.body) == ("open", {"private": True, "text": "tea"})
    await store.close()


def test_an_index_of_texts_is_filled_again_with_their_words(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    before = MIGRATIONS.index(SAID_IN_TERMS)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, MIGRATIONS[:before])
        db.execute("INSERT INTO said (rowid, text) VALUES (7, 'old')")
        db.execute("UPDATE said_upto SET upto = 7")
        migrate(db, path, MIGRATIONS[: before + 1])
        assert db.execute("SELECT count(*) FROM said").fetchone() == (0,)
        assert db.execute("SELECT upto FROM said_upto").fetchone() == (0,)


def test_a_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(open_writer(path, synchronous="FULL")) as db:
        steps = (*MIGRATIONS, ("CREATE TABLE extra (n INTEGER)", "CREATE TABLE threads (n INTEGER)"))
        with pytest.raises(sqlite3.OperationalError, match="already exists"):
            migrate(db, path, steps)
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'").fetchone() == (0,)


async def test_a_newer_schema_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(open_writer(path, synchronous="FULL")) as db:
        db.execute("PRAGMA user_version = 99")
    words = await _refusal(path)
    assert str(path) in words
    assert "version 99" in words
    assert "newer release" in words
    assert look(path, "PRAGMA user_version") == [(99,)]


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    content = b"Dear diary, today I was mistaken for a database. " * 50
    path.write_bytes(content)
    words = await _refusal(path)
    assert str(path) in words
    assert "not a SQLite database" in words
    assert path.read_bytes() == content


async def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    content = path.read_bytes()
    words = await _refusal(path)
    assert str(path) in words
    assert "another program" in words
    assert path.read_bytes() == content


async def test_a_damaged_file_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.close()
    content = bytearray(path.read_bytes())
    content[100:1024] = b"\xff" * 924  # the schema's first page, after the file's header
    path.write_bytes(content)
    words = await _refusal(path)
    assert str(path) in words
    assert "damaged" in words


@pytest.mark.parametrize("place", ["/sys/kernel/store.db", "/proc/parlour/store.db"])
async def test_a_folder_where_nothing_can_be_written_is_refused_by_name(place: str) -> None:
    words = await _refusal(Path(place))
    assert place in words
    assert "cannot be created" in words


async def test_a_folder_in_the_files_place_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in await _refusal(tmp_path)


async def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    assert str(tmp_path / "data" / "store.db") in await _refusal(tmp_path / "data" / "store.db")


async def test_a_store_can_be_opened_again_after_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"nonsense" * 200)
    store = SqliteStore(path)
    with pytest.raises(StorageError):
        await store.open()
    path.unlink()
    await store.open()
    assert not (await store.accept(entry("1"))).duplicate
    await store.close()


async def test_a_thread_that_no_one_was_asked_in_costs_no_read(tmp_path: Path) -> None:
    asked, path = interaction(), tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.open_interaction(asked)
    await store.close()
    store = SqliteStore(path)
    await store.open()
    assert await store.pending_interactions(asked.thread, now=NOW) == (asked,)
    await store.close()
    # Nothing can be read from a closed store.
    assert await store.pending_interactions("console:local:another", now=NOW) == ()
    with pytest.raises(StorageError):
        await store.pending_interactions(asked.thread, now=NOW)
    assert await store.pending_interactions(asked.thread, now=asked.expires_at + 1) == ()
