"""Connections, migrations and errors of the store on Postgres."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial

import asyncpg
import pytest

from gateway.storage.ports import Accepted, Lease
from gateway.storage.postgres import operations
from gateway.storage.postgres.database import Connection, Database, place_of
from gateway.storage.postgres.migration_steps import STEPS, added
from gateway.storage.states import StateChanged, StateWrite
from pipeline.domain.errors import FenceLost, StorageError
from tests.contracts.store_values import NOW, entry, record, turn
from tests.contracts.store_values import THREAD as THREAD_KEY
from tests.support.looks import look_again
from tests.support.postgres_fixture import Emptier

THREAD = "INSERT INTO threads (key) VALUES ($1)"


async def _add_thread(key: str, connection: Connection) -> None:
    await connection.execute(THREAD, key)


async def keys(connection: Connection) -> list[str]:
    return [row["key"] for row in await connection.fetch("SELECT key FROM threads ORDER BY key")]


def test_emptied_tables_number_from_one_also_after_a_transaction_that_was_rolled_back(
    postgres_database: str, postgres_emptier: Emptier
) -> None:
    async def take() -> int:
        connection = await asyncpg.connect(postgres_database)
        number = await connection.fetchval("SELECT nextval(pg_get_serial_sequence('parlour.inbox', 'seq'))")
        await connection.close()
        return int(number)

    postgres_emptier.empty()
    assert [asyncio.run(take()), asyncio.run(take())] == [1, 2]
    postgres_emptier.empty()
    assert asyncio.run(take()) == 1


async def test_the_server_has_the_version_that_was_asked_for(
    postgres: Database, postgres_version: int
) -> None:
    rows = await postgres.fetch("SELECT current_setting('server_version_num')::integer / 10000")

    assert [row[0] for row in rows] == [postgres_version]


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
    older = Database(postgres_url, steps=STEPS[:5])

    with pytest.raises(StorageError, match="newer release"):
        await older.open()


async def test_only_the_missing_steps_are_applied(postgres: Database, postgres_url: str) -> None:
    newer = Database(postgres_url, steps=(*STEPS, added("CREATE TABLE added (n integer)")))
    await newer.open()
    assert (await newer.format()).version == len(STEPS) + 1

    await newer.write(lambda connection: connection.execute("DROP TABLE added"))
    await newer.write(
        lambda connection: connection.execute("UPDATE schema_version SET version = version - 1")
    )
    await newer.close()
    assert (await postgres.format()).version == len(STEPS)


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


async def test_one_gateway_at_a_time_has_the_database_alone(postgres_url: str) -> None:
    first, second = Database(postgres_url, use="alone"), Database(postgres_url, use="alone", claim_s=0.01)
    await first.open()
    with pytest.raises(StorageError, match="in use by another gateway"):
        await second.open()
    beside = Database(postgres_url)
    await beside.open()
    await beside.close()
    await first.close()
    await second.open()
    await second.close()


async def test_what_waits_together_is_one_batch_and_a_refusal_undoes_only_itself(postgres: Database) -> None:
    stale = Lease(thread="web:site:a", owner="me", fence=7, expires_at=0.0)
    outcomes: list[object] = await asyncio.gather(
        *(postgres.apply(operations.accept(entry(str(number)))) for number in range(20)),
        postgres.apply(operations.append(stale, [record()], None)),
        postgres.apply(operations.accept(entry("last"))),
        return_exceptions=True,
    )

    assert [one.seq for one in outcomes if isinstance(one, Accepted)] == list(range(1, 22))
    assert isinstance(outcomes[20], FenceLost)
    assert (postgres.batches, postgres.refused_batches) == (1, 0)


async def test_a_value_that_postgres_cannot_hold_fails_alone(postgres: Database) -> None:
    good, bad, better = await asyncio.gather(
        postgres.apply(operations.accept(entry("1"))),
        postgres.apply(operations.accept(entry("nul \0"))),
        postgres.apply(operations.accept(entry("2"))),
        return_exceptions=True,
    )

    assert isinstance(bad, StorageError)
    assert "cannot be stored" in str(bad)
    assert [one.duplicate for one in (good, better) if isinstance(one, Accepted)] == [False, False]


async def test_two_processes_write_to_the_same_threads_at_once(postgres: Database, postgres_url: str) -> None:
    other = Database(postgres_url)
    await other.open()
    threads = [f"web:site:{number}" for number in range(8)]
    new = [entry(f"{thread} {number}", thread=thread) for number in range(5) for thread in threads]
    backwards = [entry(f"{one.dedupe_key} again", thread=one.thread) for one in reversed(new)]
    await asyncio.gather(
        *(postgres.apply(operations.accept(one)) for one in new),
        *(other.apply(operations.accept(one)) for one in backwards),
        *(other.apply(operations.accept(one)) for one in new),
    )
    await other.close()

    rows = await postgres.fetch("SELECT count(*), count(DISTINCT dedupe_key) FROM inbox")
    assert tuple(rows[0]) == (80, 80)


async def test_a_state_that_another_process_writes_meanwhile_is_not_overwritten(
    postgres: Database, postgres_url: str
) -> None:
    accepted = await postgres.apply(operations.accept(entry("1")))
    lease = await postgres.apply(operations.acquire(THREAD_KEY, "me", until=NOW + 30, now=NOW))
    assert lease is not None
    other = await asyncpg.connect(postgres_url)
    writing = other.transaction()
    await writing.start()
    await other.execute("INSERT INTO parlour.states VALUES ('ses-1', 'flow', 1, '{}')")
    state = StateWrite(owner="ses-1", graph="flow", revision=0, body={"of": "ours"})
    commit = postgres.apply(operations.commit(lease, replace(turn(accepted.seq), states=(state,))))
    while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
        await look_again()
    await writing.commit()
    await other.close()

    with pytest.raises(StateChanged):
        await commit
    rows = await postgres.fetch("SELECT body, (SELECT count(*) FROM inbox WHERE outcome IS NULL) FROM states")
    assert [tuple(row) for row in rows] == [("{}", 1)]


async def test_a_transaction_that_ran_into_another_is_repeated(postgres: Database, postgres_url: str) -> None:
    await postgres.write(lambda connection: connection.execute(THREAD, "a"))
    await postgres.write(lambda connection: connection.execute(THREAD, "b"))
    other, watch = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
    crossing = other.transaction()
    await crossing.start()
    lock = "SELECT 1 FROM parlour.threads WHERE key = $1 FOR UPDATE"
    # The server gives up the transaction that looks first for the circle: ours.
    await other.execute("SET LOCAL deadlock_timeout = '1h'")
    await other.fetchval(lock, "b")
    holds, crossed, over = asyncio.Event(), asyncio.Event(), asyncio.Event()
    tries = 0

    async def both(connection: Connection) -> int:
        nonlocal tries
        tries += 1
        if tries > 1:
            # Else it may lock its row again before the other one wakes, again and again.
            await over.wait()
        await connection.execute("SET LOCAL deadlock_timeout = '1ms'")
        await connection.fetchval(lock, "a")
        holds.set()
        await crossed.wait()
        await connection.fetchval(lock, "b")
        return tries

    async def cross() -> None:
        await other.fetchval(lock, "a")
        await crossing.commit()
        over.set()

    written = postgres.submit(both)
    await holds.wait()
    async with asyncio.TaskGroup() as group:
        group.create_task(cross())
        while not await watch.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            await look_again()
        crossed.set()
    await other.close()
    await watch.close()
    assert await written == 2
