"""Steps of the data format while processes of an older release use the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from urllib.parse import urlsplit

import asyncpg
import pytest

from gateway.storage.formats import Formats, listed
from gateway.storage.owners import Owner
from gateway.storage.postgres import PostgresStore
from gateway.storage.postgres.database import Database
from gateway.storage.postgres.migration_steps import STEPS, added, formats_of, removed
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import new_id
from tests.contracts.store_values import NOW, entry

OLD = len(STEPS)
ADDED = added(
    "CREATE TABLE notes (n integer)", "ALTER TABLE threads ADD COLUMN noted integer NOT NULL DEFAULT 0"
)
REMOVED = removed("DROP TABLE notes", oldest=OLD + 1)
NEW = (*STEPS, ADDED)
NEWER = (*STEPS, ADDED, REMOVED)
ALIVE_S = 600.0


@pytest.fixture
async def place(postgres_server_url: str) -> AsyncIterator[str]:
    """The URL of a separate database."""
    name = new_id("formats").replace("-", "_").lower()
    admin = await asyncpg.connect(postgres_server_url)
    await admin.execute(f"CREATE DATABASE {name}")
    yield urlsplit(postgres_server_url)._replace(path=f"/{name}").geturl()
    await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await admin.close()


def process(name: str) -> Owner:
    return Owner(id=f"own-{name}", name=name, role="work", version="0.1.0")


async def beats(store: PostgresStore, name: str, *, ttl_s: float = ALIVE_S) -> bool:
    return await store.owners.beat(process(name), ttl_s=ttl_s, now=NOW)


async def opened(place: str, steps: tuple[object, ...] = STEPS) -> PostgresStore:
    store = PostgresStore(place, use="shared", steps=steps)  # type: ignore[arg-type]  # steps of this module
    await store.open()
    return store


async def _refused(work: Awaitable[object]) -> str:
    with pytest.raises(StorageError) as caught:
        await work
    return str(caught.value)


def test_a_program_works_before_the_steps_at_its_end_that_take_away() -> None:
    assert formats_of(STEPS) == Formats(oldest=OLD, newest=OLD)
    assert formats_of(NEWER) == Formats(oldest=OLD + 1, newest=OLD + 2)
    later = (*NEWER, added("SELECT 1"))
    assert formats_of(later) == Formats(oldest=OLD + 3, newest=OLD + 3)


def test_many_processes_are_named_in_part() -> None:
    assert listed(("a", "b")) == "a, b"
    assert listed([str(number) for number in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"


async def test_both_releases_write_after_a_step_that_adds(place: str) -> None:
    old = await opened(place)
    await old.accept(entry("1"))
    new = await opened(place, NEW)
    for store, key in ((old, "2"), (new, "3"), (old, "4")):
        await store.accept(entry(key))
    assert (await old.formats.current()).version == OLD + 1
    assert (await old.counts()).inbox_open == 4
    # One that starts now is accepted too, and so is a command.
    again = await opened(place)
    assert (await again.counts()).inbox_open == 4
    for store in (again, new, old):
        await store.close()


async def test_statements_that_were_prepared_before_a_change_are_prepared_again(place: str) -> None:
    old = Database(place)
    await old.open()

    async def all_columns(connection: asyncpg.Connection[asyncpg.Record]) -> list[asyncpg.Record]:
        return await connection.fetch("SELECT * FROM threads")

    for _ in range(2):
        await old.read(all_columns)
    new = await opened(place, NEW)
    assert await old.read(all_columns) == []
    await new.close()
    await old.close()


async def test_a_step_that_takes_away_waits_for_older_processes_and_is_applied_later(place: str) -> None:
    old = await opened(place)
    await beats(old, "old")
    new = await opened(place, NEWER)
    await beats(new, "new")
    found = await new.formats.upgrade()
    assert (found.version, found.oldest, found.waiting) == (OLD + 1, 6, 1)
    assert found.held_by == (f"old (version 0.1.0, format {OLD})",)
    await old.owners.retire("own-old")
    found = await new.formats.upgrade()
    assert (found.version, found.oldest, found.held_by) == (OLD + 2, OLD + 1, ())
    with pytest.raises(
        StorageError, match=rf"has data format {OLD + 2}, which programs from format {OLD + 1} on"
    ):
        await beats(old, "old")
    with pytest.raises(StorageError, match="Install that release again"):
        await opened(place)
    # What has taken part in both releases sees the formats of each.
    by_name = {one.owner.name: one for one in await new.owners.listed(now=NOW)}
    assert by_name["new"].formats == Formats(oldest=OLD + 1, newest=OLD + 2)
    assert by_name["old"].formats == Formats(oldest=OLD, newest=OLD)
    assert by_name["old"].left_s <= 0
    await new.close()
    await old.close()


async def test_a_process_that_stood_still_meanwhile_learns_that_it_is_too_old(place: str) -> None:
    old = await opened(place)
    await beats(old, "old", ttl_s=-1.0)
    new = await opened(place, NEWER)
    assert (await new.formats.current()).version == OLD + 2
    with pytest.raises(StorageError, match="brought there by a newer release"):
        await beats(old, "old")
    await new.close()
    await old.close()


async def test_a_first_report_during_the_step_waits_for_its_end(place: str) -> None:
    old = await opened(place)
    other = await asyncpg.connect(place)
    migrating = other.transaction()
    await migrating.start()
    await other.fetchval("SELECT pg_advisory_xact_lock($1)", 0x5061726C6F7572)
    await other.execute(f"UPDATE parlour.schema_version SET version = {OLD + 2}, oldest = {OLD + 1}")
    async with asyncio.TaskGroup() as group:
        reported = group.create_task(_refused(beats(old, "old")))
        while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            pass
        await migrating.commit()
    await other.close()
    assert "brought there by a newer release" in reported.result()
    await old.close()


async def test_a_program_that_needs_the_step_names_who_keeps_it_back(place: str) -> None:
    old = await opened(place)
    await beats(old, "worker-7")
    needs = (*NEWER, added("CREATE TABLE more (n integer)"))
    clock = ManualClock()
    newest = Database(place, use="shared", steps=needs, claim_s=1.0, clock=clock)
    async with asyncio.TaskGroup() as group:
        opening = group.create_task(_refused(newest.open()))
        while not opening.done():
            await clock.advance(0.25)
    assert f"stays at data format {OLD + 1}" in opening.result()
    assert f"alive: worker-7 (version 0.1.0, format {OLD}). Stop them" in opening.result()
    # One that ends while the new one waits is enough.
    newest = Database(place, use="shared", steps=needs, claim_s=1e6, clock=clock)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(newest.open())
        await clock.advance(0.25)
        await old.owners.retire("own-worker-7")
        while not waiting.done():
            await clock.advance(0.25)
    assert (await newest.format()).version == OLD + 3
    await newest.close()
    await old.close()


async def test_one_that_has_the_database_alone_asks_no_other_process(place: str) -> None:
    old = await opened(place)
    await beats(old, "killed")
    await old.close()
    alone = Database(place, use="alone", steps=NEWER)
    await alone.open()
    assert (await alone.format()).version == OLD + 2
    await alone.close()


async def test_a_database_from_before_formats_were_reported_is_brought_up_beside_its_processes(
    place: str,
) -> None:
    before = Database(place, steps=STEPS[:6])
    await before.open()
    alive = "INSERT INTO owners VALUES ('own-1', 'one', 'work', '0.0.9', '[]', unix_now() + 600)"
    await before.write(lambda db: db.execute(alive))
    store = await opened(place)
    (one,) = await store.owners.listed(now=NOW)
    assert one.formats == Formats(oldest=6, newest=6)
    # It reports as it did before.
    await before.write(lambda db: db.execute(alive.replace("own-1", "own-2")))
    newer = await opened(place, NEWER)
    assert len((await newer.formats.upgrade()).held_by) == 2
    for each in (newer, store):
        await each.close()
    await before.close()


async def test_a_table_that_a_dump_holds_does_not_hold_up_the_others_for_long(place: str) -> None:
    old = await opened(place)
    dump = await asyncpg.connect(place)
    dumping = dump.transaction()
    await dumping.start()
    await dump.execute("LOCK TABLE parlour.threads IN ACCESS SHARE MODE")
    slow = (*STEPS, added("SET LOCAL lock_timeout = '1ms'", "ALTER TABLE threads ADD COLUMN noted integer"))
    with pytest.raises(StorageError, match="another program, such as a dump, holds a table"):
        await opened(place, slow)
    await dumping.rollback()
    await dump.close()
    assert (await old.formats.current()).version == OLD
    await old.close()
