"""Fixtures with a real Postgres: one server for each worker, started by the first test that needs it, and one
database whose tables are emptied before each test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import asyncpg
import pytest

from gateway.storage.postgres.database import Database
from tests.support.postgres_server import NoServer, postgres_server

_EMPTY = """
DO $$ DECLARE name text; filled boolean; names text := ''; BEGIN
    FOR name IN SELECT tablename FROM pg_tables
        WHERE schemaname = 'parlour' AND tablename NOT IN ('schema_version', 'audit_head') LOOP
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM parlour.%I)', name) INTO filled;
        IF filled THEN names := names || ', parlour.' || quote_ident(name); END IF;
    END LOOP;
    IF names <> '' THEN EXECUTE 'TRUNCATE ' || substr(names, 3) || ' RESTART IDENTITY CASCADE'; END IF;
    -- A transaction that was rolled back took a number and left no row.
    FOR name IN SELECT sequencename FROM pg_sequences
        WHERE schemaname = 'parlour' AND last_value IS NOT NULL LOOP
        EXECUTE format('ALTER SEQUENCE parlour.%I RESTART', name);
    END LOOP;
    UPDATE parlour.audit_head SET n = 0, hash = repeat('0', 64);
    INSERT INTO parlour.audit_head SELECT 1, 0, repeat('0', 64)
        WHERE NOT EXISTS (SELECT 1 FROM parlour.audit_head);
END $$"""


@pytest.fixture(scope="session")
def postgres_version(request: pytest.FixtureRequest) -> int:
    """The version of every server that a test starts."""
    return int(request.config.getoption("--postgres"))


@contextmanager
def skips_without_postgres() -> Iterator[None]:
    """Skip the test, in words, where no server can be started."""
    try:
        yield
    except NoServer as error:
        pytest.skip(f"no Postgres server can be started here: {error}")


@pytest.fixture(scope="session")
def postgres_server_url(postgres_version: int) -> Iterator[str]:
    """The URL of a server that lives as long as the worker."""
    with skips_without_postgres(), postgres_server(postgres_version) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_database(postgres_server_url: str) -> str:
    """The URL of a database with every table, in which earlier tests have written."""

    async def make() -> None:
        database = Database(postgres_server_url)
        await database.open()
        await database.close()

    asyncio.run(make())
    return postgres_server_url


EMPTIER = "empties-the-tests"
"""The application that the connection of the emptier names."""


class Emptier:
    """Empties every table of a database, by one connection that lasts: a new one reads what every table is,
    which takes ten times as long as to look for rows. Not for use inside a running event loop."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._connection = self._runner.run(
            asyncpg.connect(url, server_settings={"application_name": EMPTIER})
        )

    def empty(self) -> None:
        """Empty every table."""
        self._runner.run(self._connection.execute(_EMPTY))

    def close(self) -> None:
        """Disconnect."""
        self._runner.run(self._connection.close())
        self._runner.close()


@pytest.fixture(scope="session")
def postgres_emptier(postgres_database: str) -> Iterator[Emptier]:
    """Empties the database of the tests."""
    emptier = Emptier(postgres_database)
    yield emptier
    emptier.close()


@pytest.fixture
def postgres_url(postgres_database: str, postgres_emptier: Emptier) -> str:
    """The URL of a database with every table, all of them empty."""
    postgres_emptier.empty()
    return postgres_database


@pytest.fixture
async def postgres(postgres_url: str) -> AsyncIterator[Database]:
    """The same database, opened."""
    database = Database(postgres_url)
    await database.open()
    yield database
    await database.close()
