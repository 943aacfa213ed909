"""What the doctor says about a store in Postgres."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest

from gateway.cli.database_check import database_findings
from gateway.cli.store_check import store_findings
from gateway.config import Settings, load
from gateway.storage.postgres import PostgresStore
from pipeline.domain.clock import ManualClock, SystemClock
from tests.contracts.store_values import entry

_SETTINGS = ('storage.kind="postgres"', 'storage.url="env:DATABASE_OF_THE_TEST"')


def _settings(tmp_path: Path, url: str) -> Settings:
    return load(None, {"DATABASE_OF_THE_TEST": url}, [*_SETTINGS, f"data.dir={tmp_path}"])


async def test_a_store_in_order_is_green_with_its_version_and_sizes(
    tmp_path: Path, postgres_url: str, postgres_version: int
) -> None:
    store = PostgresStore(postgres_url)
    await store.open()
    await store.accept(entry("1"))
    busy, (found, jobs) = await store_findings(_settings(tmp_path, postgres_url), SystemClock())
    await store.close()
    assert not busy
    assert (found.name, found.good, jobs.name, jobs.good) == ("store", True, "jobs", True)
    begin = f"Postgres local/postgres, version {postgres_version}; 0 messages done, 1 waiting,"
    assert found.words.startswith(begin)
    assert jobs.words == "0 waiting, none given up"


async def test_a_clock_that_differs_is_red(tmp_path: Path, postgres_url: str) -> None:
    (found,) = await database_findings(_settings(tmp_path, postgres_url), ManualClock(0.0))
    assert not found.good
    assert "its clock differs from this machine's by" in found.words


async def test_a_newer_schema_is_red_and_an_older_one_is_not(tmp_path: Path, postgres_url: str) -> None:
    # A clock far from the server's would be red too, and a slow machine must not be.
    admin = await asyncpg.connect(postgres_url)
    change = "UPDATE parlour.schema_version SET version = version + $1"
    needed = "UPDATE parlour.schema_version SET oldest = $1"
    oldest = await admin.fetchval("SELECT oldest FROM parlour.schema_version")
    await admin.execute(change, 1)
    (newer, *_) = await database_findings(_settings(tmp_path, postgres_url), SystemClock())
    assert newer.good
    await admin.execute(needed, 1_000)
    (newer,) = await database_findings(_settings(tmp_path, postgres_url), SystemClock())
    await admin.execute(needed, oldest)
    await admin.execute(change, -2)
    (older,) = await database_findings(_settings(tmp_path, postgres_url), SystemClock())
    await admin.execute(change, 1)
    await admin.close()
    assert "a newer release of Parlour has brought it to data format" in newer.words
    assert "a newer release" not in older.words


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://bot:hunter2@127.0.0.1:1/parlour", "cannot be reached"),
        ("mysql://bot:hunter2@db/parlour", "must begin with postgresql://"),
    ],
)
async def test_a_database_that_cannot_be_used_is_red_without_its_password(
    tmp_path: Path, url: str, words: str
) -> None:
    (found,) = await database_findings(_settings(tmp_path, url), SystemClock())
    assert not found.good
    assert words in found.words
    assert "hunter2" not in found.words
