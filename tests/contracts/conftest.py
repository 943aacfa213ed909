"""What is under test: every contract test runs once per store, or once per channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from tests.contracts.channel_case import ContractCase
from tests.contracts.channel_cases import CASES

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


@pytest.fixture(params=CASES, ids=lambda factory: factory.__name__)
async def case(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContractCase]:
    # A task group has to be entered and left by one task; the fixture's own would be two.
    ready: asyncio.Future[ContractCase] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with request.param(tmp_path) as made:
            ready.set_result(made)
            await over.wait()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(hold())
        yield await ready
        over.set()
