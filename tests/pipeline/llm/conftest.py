"""What the tests of the backends of hosted models share: a fake endpoint, and a clock that does not wait."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.pipeline.llm.asking import ImpatientClock
from tests.support.openai_server import FakeOpenAiServer


@pytest.fixture
async def server() -> AsyncIterator[FakeOpenAiServer]:
    """A separate endpoint for each test."""
    async with FakeOpenAiServer() as running:
        yield running


@pytest.fixture
def clock() -> ImpatientClock:
    """One that notes what it was to sleep."""
    return ImpatientClock()
