"""The store of a gateway for which a test names none: SQLite in its data folder, or with `--store postgres` a
database of a real Postgres server, one for each data folder, so that a gateway that starts again finds it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from gateway.storage.ports import Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore

_TEMPLATE = "parlour_template"
_servers: list[str] = []
"""The URL of the server that is used; none for SQLite."""
_made: set[str] = set()


@contextmanager
def stores_on(server_url: str) -> Iterator[None]:
    """Give every gateway without a store of the test a database of this server."""
    asyncio.run(_make_template(server_url))
    _servers.append(server_url)
    try:
        yield
    finally:
        _servers.clear()


def about_sqlite() -> frozenset[str]:
    """The tests that are about SQLite, without the values of their parameters."""
    lines = Path(__file__).with_name("sqlite_only.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


async def default_store(data: Path) -> Store:
    """The store of the gateway in the folder `data`, the same at each call."""
    if not _servers:
        return SqliteStore(data / "parlour.sqlite3", synchronous="NORMAL")
    name = f"t{hashlib.sha256(str(data).encode()).hexdigest()[:24]}"
    if name not in _made:
        await _run(_servers[0], f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        _made.add(name)
    return PostgresStore(_place(_servers[0], name))


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


def _place(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
