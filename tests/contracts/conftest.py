"""What is under test: every contract test of the store runs once per store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore

Reopen = Callable[[], Awaitable[Store]]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def reopen(store: Store, tmp_path: Path) -> AsyncIterator[Reopen]:
    """Closes the store and gives what a new process would open."""
    followers: list[Store] = []

    async def again() -> Store:
        await store.close()
        follower: Store = store if isinstance(store, MemoryStore) else SqliteStore(tmp_path / "store.db")
        await follower.open()
        followers.append(follower)
        return follower

    yield again
    for follower in followers:
        await follower.close()
