"""The fixtures of the contract: the channel under test comes from the subclass's fixture `factory`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import pytest_asyncio

from parlour.testing.channel_case import ContractCase

Factory = Callable[[Path], AbstractAsyncContextManager[ContractCase]]
"""Opens a running case; the folder is empty and for the test alone."""
_PATIENCE_S = 60.0


class CaseFixtures:
    """The base of the contract's classes. A subclass overrides `factory`."""

    @pytest.fixture
    def factory(self) -> Factory:
        """Opens the case. Give it `params` to test several channels, or one in several modes."""
        raise NotImplementedError("override the fixture `factory`: it returns what opens a ContractCase")

    @pytest_asyncio.fixture
    async def case(self, factory: Factory, tmp_path: Path) -> AsyncIterator[ContractCase]:
        """The running case of one test."""
        # A task group has to be entered and left by one task; the fixture's own would be two.
        ready: asyncio.Future[ContractCase] = asyncio.get_running_loop().create_future()
        over = asyncio.Event()

        async def hold() -> None:
            async with factory(tmp_path) as made:
                ready.set_result(made)
                await over.wait()

        async with asyncio.timeout(_PATIENCE_S), asyncio.TaskGroup() as group:
            group.create_task(hold())
            yield await ready
            over.set()
