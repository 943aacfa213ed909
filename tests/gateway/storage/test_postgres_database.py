"""Connections, migrations and errors of the store on Postgres."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

import asyncpg
import pytest

from gateway.storage.postgres.database import Connection, Database, place_of
from gateway.storage.postgres.migrations import schema_version
from gateway.storage.postgres.steps import STEPS
from pipeline.domain.errors import StorageError

THREAD = "INSERT INTO threads (key) VALUES ($1)"


async def _add_thread(key: str, connection: Connection) -> None:
    await connection.execute(THREAD, key)


async def keys(connection: Connection) -> list[str]:
    return [row["key"] for row in await connection.fetch("SELECT key FROM threads ORDER BY key")]


async def test_what_is_written_is_read(postgres: Database) -> None:
    await postgres.write(lambda connection: connection.execute(THREAD, "web:site:a"))

    assert await postgres.read(keys) == ["web:site:a"]


async def test_a_change_that_raises_changes_nothing_and_stops_no_other(postgres: Database) -> None:
    async def fails(connection: Connection) -> None:
        await connection.execute(THREAD, "web:site:a")
        raise KeyError("x")

    failed, _ = await asyncio.gather(
        postgres.write(fails),
        postgres.write(lambda connection: connection.execute(THREAD, "web:site:b")),
        return_exceptions=True,
    )

    assert isinstance(failed, KeyError)
    assert await postgres.read(keys) == ["web:site:b"]


async def test_a_read_cannot_write(postgres: Database) -> None:
    with pytest.raises(StorageError, match="read-only"):
        await postgres.read(lambda connection: connection.execute(THREAD, "web:site:a"))


async def test_an_abandoned_write_is_carried_out(postgres: Database) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await postgres.write(lambda connection: connection.execute(THREAD, "a"))

    await postgres.write(lambda connection: connection.execute(THREAD, "b"))
    assert await postgres.read(keys) == ["a", "b"]


async def test_text_that_postgres_cannot_hold_is_a_storage_error(postgres: Database) -> None:
    for text in ("nul \0", "half \ud800"):
        with pytest.raises(StorageError, match="cannot be stored"):
            await postgres.write(partial(_add_thread, text))


async def test_a_lost_connection_is_made_again(postgres: Database, postgres_url: str) -> None:
    other = await asyncpg.connect(postgres_url)
    await other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'parlour'"
    )
    await other.close()

    # Whether the loss is seen before or during a call depends on when the server's message arrives.
    with contextlib.suppress(StorageError):
        await postgres.write(keys)
    with contextlib.suppress(StorageError):
        await postgres.read(keys)

    await postgres.write(lambda connection: connection.execute(THREAD, "web:site:a"))
    assert await postgres.read(keys) == ["web:site:a"]


async def test_a_newer_schema_is_refused(postgres_url: str) -> None:
    older = Database(postgres_url, steps=STEPS[:-1])

    with pytest.raises(StorageError, match="newer release"):
        await older.open()


async def test_only_the_missing_steps_are_applied(postgres: Database, postgres_url: str) -> None:
    async def version(connection: Connection) -> int:
        return await schema_version(connection)

    newer = Database(postgres_url, steps=(*STEPS, ("CREATE TABLE added (n integer)",)))
    await newer.open()
    assert await newer.read(version) == len(STEPS) + 1

    await newer.write(lambda connection: connection.execute("DROP TABLE added"))
    await newer.write(
        lambda connection: connection.execute("UPDATE schema_version SET version = version - 1")
    )
    await newer.close()
    assert await postgres.read(version) == len(STEPS)


async def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    database = Database("postgresql://bot:hunter2@127.0.0.1:1/parlour")

    with pytest.raises(StorageError, match=r"Postgres 127\.0\.0\.1:1/parlour: .*cannot be reached") as caught:
        await database.open()
    assert "hunter2" not in str(caught.value)


def test_another_kind_of_url_is_refused() -> None:
    with pytest.raises(StorageError, match="postgresql://"):
        place_of("mysql://bot@db/parlour")


async def test_a_closed_database_says_so(postgres: Database) -> None:
    await postgres.close()

    with pytest.raises(StorageError, match="closed"):
        await postgres.read(keys)
