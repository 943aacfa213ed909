"""Which tests one worker of pytest-xdist runs together: those of a module, and those of the sources.

The tests of the sources read all of them into syntax trees, which takes longer than to judge them. What one
module has read is there for the next only in the same worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/architecture/",)
"""Folders whose modules share what they have read."""


class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist ships no types
    """As `--dist loadscope`, with the folders of `TOGETHER` as one scope each."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """The scope of a test: a module, or a folder."""
    for folder in TOGETHER:
        if nodeid.startswith(folder):
            return folder
    return nodeid.split("::", maxsplit=1)[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Callable[..., Any]) -> FolderScheduling | None:
    """Ours where `--dist loadscope` is asked for."""
    return FolderScheduling(config, log) if config.getvalue("dist") == "loadscope" else None
