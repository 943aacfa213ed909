"""The syntax trees of all sources: millions of objects, which are kept for these tests alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.architecture import sources


@pytest.fixture(scope="package", autouse=True)
def _no_garbage_in_trees() -> Iterator[None]:
    """No garbage collection looks at the trees: while they are made, that takes as long as to make them, and
    afterwards each collection in this process took seconds."""
    gc.disable()
    yield
    sources.forget()
    gc.enable()
