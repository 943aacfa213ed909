"""The store of a gateway for which a test names none: SQLite in its data folder, or with `--store postgres` a
database of a real Postgres server, one for each data folder, so that a gateway that starts again finds it.

That holds for gateways in the test's process, in its child programs and in processes of `parlour serve`: the
server's address is in the environment.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from gateway.config import environment
from gateway.storage.ports import Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore

_TEMPLATE = "parlour_template"
_SERVER = "SERVER_OF_THE_TESTS_STORES"
"""The environment variable with the URL of the server that is used; it is not set for SQLite."""
_made: set[str] = set()


@contextmanager
def stores_on(server_url: str) -> Iterator[None]:
    """Give every gateway without a store of the test a database of this server."""
    asyncio.run(_make_template(server_url))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_SERVER, server_url)
        yield


def about_sqlite() -> frozenset[str]:
    """The tests that are about SQLite, without the values of their parameters."""
    lines = Path(__file__).with_name("sqlite_only.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


async def default_store(data: Path) -> Store:
    """The store of the gateway in the folder `data`, the same at each call."""
    url = await _database(data)
    return SqliteStore(data / "parlour.sqlite3", synchronous="NORMAL") if url is None else PostgresStore(url)


async def default_storage(data: Path) -> tuple[str, ...]:
    """The settings with which a gateway on the folder `data` has that store; none for SQLite. The folder
    above it gets the file with the address."""
    url = await _database(data)
    if url is None:
        return ()
    place = data.parent / f"{data.name}-store-url"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch(mode=0o600)
    place.write_text(url, encoding="utf-8")
    return ('storage.kind="postgres"', f'storage.url="file:{place}"')


def database_of(data: Path) -> str | None:
    """The URL of the database of a gateway on the folder `data`; None for SQLite."""
    server = environment().get(_SERVER)
    return None if server is None else _place(server, _name(data))


async def _database(data: Path) -> str | None:
    """As `database_of`; the database is made if it is not there."""
    server, name = environment().get(_SERVER), _name(data)
    if server is None:
        return None
    if name not in _made:
        # Another process of the test may have made it.
        with suppress(asyncpg.DuplicateDatabaseError):
            await _run(server, f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        _made.add(name)
    return _place(server, name)


async def _make_template(url: str) -> None:
    await _run(url, f"CREATE DATABASE {_TEMPLATE}")
    store = PostgresStore(_place(url, _TEMPLATE))
    await store.open()
    await store.close()


async def _run(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _name(data: Path) -> str:
    return f"t{hashlib.sha256(str(data).encode()).hexdigest()[:24]}"


def _place(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
