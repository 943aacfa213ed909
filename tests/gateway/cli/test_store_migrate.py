"""`parlour store migrate`: everything goes into a Postgres database and back, or nothing does."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gateway.cli.main import main
from gateway.runtime.data_dir import STORE_FILE, DataDir
from gateway.storage.audit import NewAuditRecord
from gateway.storage.audit_check import check_audit
from gateway.storage.postgres.books import PostgresBooks
from gateway.storage.postgres.database import Database
from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.connection import open_writer
from gateway.storage.table_copies import TABLES
from tests.contracts.memory_values import ANN, fact, found, write

_NOT_COPIED = {"probe", "said", "said_upto", "memory_index", "schema_version", "sqlite_sequence"} | {
    "owners",
    "unowned",
    "revisions",
}
_FLAGS = {"cancelled", "steered", "live", "final", "private", "deleted", "runs", "completed", "claimed"} | {
    "off_record",
    "seals",
    "sealed",
    "kept",
    "voice_brief",
    "is_foreign",
    "llm_failed",
}
_ODD = "x\0 \U0001f600 \\u0000 'ж"


async def migrate(folder: Path, *arguments: str) -> int:
    return await asyncio.to_thread(main, ["store", "migrate", *arguments, "--set", f'data.dir="{folder}"'])


def _fill(path: Path) -> None:
    """Two rows in every table, with odd texts."""
    with closing(open_writer(path, synchronous="NORMAL")) as db, db:
        db.execute("BEGIN")
        for table in TABLES:
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            for number in (3, 8):
                values = [_value(table, number, *column[1:3], is_key=bool(column[5])) for column in columns]
                if table == "audit_head":
                    values = [1, number, "hash"]
                places = ", ".join("?" * len(columns))
                db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)
        db.execute("UPDATE sqlite_sequence SET seq = 70 WHERE name = 'jobs'")
        db.execute("COMMIT")


def _value(table: str, number: int, name: str, kind: str, *, is_key: bool) -> object:
    if name == "thread" and kind == "INTEGER":
        return 3
    if name in _FLAGS:
        return number % 2
    match kind:
        case "INTEGER":
            return number
        case "REAL":
            return number + 0.1
        case "BLOB":
            return bytes([number, 0, 255])
        case _:
            return f"{name} {number}" if is_key or table == "memory_owners" else f"{name} {number} {_ODD}"


def _dump(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the tables that are copied, without leases."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE threads SET owner = NULL, expires_at = 0")
        return {table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in TABLES}


def _without_nul(rows: list[tuple[Any, ...]], nul: str) -> list[tuple[Any, ...]]:
    return [tuple(one.replace("\0", nul) if isinstance(one, str) else one for one in row) for row in rows]


async def test_every_row_of_every_table_goes_into_the_database_and_comes_back(
    tmp_path: Path, postgres_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    _fill(here / STORE_FILE)
    monkeypatch.setenv("STORE_URL", postgres_url)
    assert await migrate(here, "--to", "env:STORE_URL") == 0
    shown = capsys.readouterr().out
    assert all(f"{table}: " in shown for table in TABLES)
    assert await migrate(there, "--from", postgres_url) == 0
    before, after = _dump(here / STORE_FILE), _dump(there / STORE_FILE)
    for table in TABLES:
        nul = "\\x00" if table.startswith("memory_") else "?"
        rows = [row for row in after[table] if table != "log" or row[2] != "notice"]
        assert rows == _without_nul(before[table], nul), table
    with closing(sqlite3.connect(there / STORE_FILE)) as db:
        ids = dict(db.execute("SELECT name, seq FROM sqlite_sequence"))
        assert (ids["jobs"], ids["file_changes"]) == (70, 8)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert sorted(one.name for one in there.iterdir()) == ["gateway.lock", STORE_FILE]


async def test_the_two_stores_have_the_same_tables_and_columns(tmp_path: Path, postgres: Database) -> None:
    """A new table must be copied too, or be named as one that is not."""
    with closing(open_writer(tmp_path / "store.db", synchronous="NORMAL")) as db:
        rows = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        ours = {name for (name,) in rows if not name.startswith(("said_", "memory_index_"))}
        ours |= {name for (name,) in rows if name == "said_upto"}
        columns = {table: {row[1] for row in db.execute(f"PRAGMA table_info({table})")} for table in TABLES}
    assert ours - _NOT_COPIED == set(TABLES)
    listed = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'parlour'"
    theirs: dict[str, set[str]] = {}
    for row in await postgres.read(lambda db: db.fetch(listed)):
        theirs.setdefault(row["table_name"], set()).add(row["column_name"])
    theirs["jobs"].remove("claimed_by")
    assert {table: names for table, names in theirs.items() if table not in _NOT_COPIED} == columns


async def test_what_was_moved_continues_where_it_was(tmp_path: Path, postgres_url: str) -> None:
    """The audit's chain, the index of memories, and ids that were used before."""
    store = SqliteStore(tmp_path / STORE_FILE)
    await store.open()
    await store.shield.audit.append([NewAuditRecord(type="a", details={"n": n}, at=n) for n in range(3)])
    await write(store, ANN, fact("f1", "My sister lives in Leeds"))
    await store.close()
    assert await migrate(tmp_path, "--to", postgres_url) == 0
    database = Database(postgres_url)
    await database.open()
    books: Any = PostgresBooks(database)
    await books.shield.audit.append([NewAuditRecord(type="a", details={}, at=9.0)])
    report = await check_audit(books.shield.audit)
    assert (report.records, report.damage) == (4, ())
    assert await found(books, ANN, "my sister") == ["f1"]
    assert (await write(books, ANN, fact("f2", "I like green tea"))).facts == 1
    await database.close()
    back = tmp_path / "back"
    assert await migrate(back, "--from", postgres_url) == 0
    store = SqliteStore(back / STORE_FILE)
    await store.open()
    assert (await check_audit(store.shield.audit)).records == 4
    assert (await found(store, ANN, "tea"))[0] == "f2"
    await store.close()


async def test_nothing_is_copied_while_somebody_uses_either_store(
    tmp_path: Path, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _fill(tmp_path / STORE_FILE)
    claimed = DataDir.claim(tmp_path)
    assert await migrate(tmp_path, "--to", postgres_url) == 2
    assert "is in use by process" in capsys.readouterr().err
    claimed.release()
    database = Database(postgres_url)
    await database.open()
    assert await migrate(tmp_path, "--to", postgres_url) == 1
    assert "uses this database; stop it first" in capsys.readouterr().err
    await database.close()
    assert await migrate(tmp_path, "--to", postgres_url) == 0
    assert await migrate(tmp_path, "--to", postgres_url) == 1
    assert "has rows" in capsys.readouterr().err
    assert await migrate(tmp_path, "--from", postgres_url) == 1
    assert "has a store" in capsys.readouterr().err
    assert await migrate(tmp_path / "none", "--to", postgres_url) == 1
    assert "there is no store" in capsys.readouterr().err


async def test_a_copy_that_differs_or_breaks_off_leaves_nothing(
    tmp_path: Path, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    _fill(here / STORE_FILE)
    # The database changes a row of the last table.
    twist = """CREATE FUNCTION parlour.twist() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN new.at := new.at + 1; RETURN new; END $$"""
    on = "CREATE TRIGGER twist BEFORE INSERT ON parlour.memory_writes EXECUTE FUNCTION parlour.twist()"
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(twist)
    await connection.execute(on.replace("EXECUTE", "FOR EACH ROW EXECUTE"))
    try:
        assert await migrate(here, "--to", postgres_url) == 1
        assert "the copy of the table memory_writes differs" in capsys.readouterr().err
        assert await connection.fetchval("SELECT count(*) FROM parlour.threads") == 0
        await connection.execute("DROP FUNCTION parlour.twist CASCADE")
        assert await migrate(here, "--to", postgres_url) == 0
        there.mkdir()
        (there / f"{STORE_FILE}.new").write_text("what an attempt has left")
        await connection.execute("ALTER TABLE parlour.memory_writes RENAME COLUMN at TO other")
        assert await migrate(there, "--from", postgres_url) == 1
        assert "the table memory_writes has other columns" in capsys.readouterr().err
        assert [one.name for one in there.iterdir()] == ["gateway.lock"]
    finally:
        await connection.execute("DROP FUNCTION IF EXISTS parlour.twist CASCADE")
        await connection.execute(
            """DO $$ BEGIN ALTER TABLE parlour.memory_writes RENAME COLUMN other TO at;
            EXCEPTION WHEN undefined_column THEN NULL; END $$"""
        )
        await connection.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://x", "must begin with postgresql://"),
        ("env:NO_SUCH_VARIABLE", "is not set"),
        ("postgresql://bot@127.0.0.1:1/x", "cannot be reached"),
    ],
)
async def test_a_wrong_url_is_explained_without_its_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str, words: str
) -> None:
    _fill(tmp_path / STORE_FILE)
    assert await migrate(tmp_path, "--to", url.replace("bot@", "bot:p4ss@")) in (1, 2)
    error = capsys.readouterr().err
    assert words in error
    assert "p4ss" not in error
