"""The folder of one conversation, in the real sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sandbox import Box, box


@pytest.fixture
def sandbox() -> Iterator[Box]:
    with box() as one:
        yield one
