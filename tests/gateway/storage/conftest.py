"""The store's files are opened as a user's gateway opens them: here they are what is tested."""

from __future__ import annotations

import pytest

from gateway.storage.sqlite import group_commit
from gateway.storage.sqlite.connection import open_writer


@pytest.fixture(autouse=True)
def _as_in_a_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "open_writer", open_writer)
