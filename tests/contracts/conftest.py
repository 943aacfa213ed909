"""What is under test: every contract test of the store runs once per store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore
from tests.contracts.bus_cases import CASES, BusCase, MakeCase

Reopen = Callable[[], Awaitable[Store]]


_STORES = ("memory", "sqlite", "postgres")


@pytest.fixture(params=_STORES)
def store_kind(request: pytest.FixtureRequest) -> str:
    """Which store is under test."""
    return str(request.param)


@pytest.fixture
def postgres_place(request: pytest.FixtureRequest, store_kind: str) -> str:
    """The URL of the empty database for a store that needs one: the tests of the others start no server."""
    return str(request.getfixturevalue("postgres_url")) if store_kind == "postgres" else ""


@pytest.fixture
async def store(store_kind: str, postgres_place: str, tmp_path: Path) -> AsyncIterator[Store]:
    opened = _made(store_kind, tmp_path, postgres_place)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def reopen(store: Store, tmp_path: Path) -> AsyncIterator[Reopen]:
    """Closes the store and gives what a new process would open."""
    followers: list[Store] = []

    async def again() -> Store:
        await store.close()
        follower = store if isinstance(store, MemoryStore) else _another(store, tmp_path)
        await follower.open()
        followers.append(follower)
        return follower

    yield again
    for follower in followers:
        await follower.close()


def _made(kind: str, folder: Path, url: str) -> Store:
    if kind == "memory":
        return MemoryStore()
    return PostgresStore(url) if kind == "postgres" else SqliteStore(folder / "store.db")


def _another(store: Store, folder: Path) -> Store:
    if isinstance(store, PostgresStore):
        return PostgresStore(store.url)
    return SqliteStore(folder / "store.db")


@pytest.fixture(params=CASES, ids=lambda make: make.__name__)
async def case(request: pytest.FixtureRequest) -> AsyncIterator[BusCase]:
    make: MakeCase = request.param
    async with make(request) as made:
        yield made
