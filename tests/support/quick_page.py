"""The page's files and texts, read and rendered once per process: a third of the time of a gateway's start.

`install` puts `page_files` in the place of `PageFiles`, which each web adapter makes for itself, and the same
tables into each. Not for tests of the files themselves, which make their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from adapters.web import adapter
from adapters.web.pages import PageFiles
from adapters.web.settings import PACKAGED_PAGE
from adapters.web.text_tables import TextTable, packaged_tables


def install(patch: pytest.MonkeyPatch) -> None:
    """Keep the page's files in this process and in those that it forks, until `patch` is undone."""
    patch.setattr(adapter, "PageFiles", page_files)
    patch.setattr(adapter, "packaged_tables", _tables)


def page_files(directory: Path, tables: Sequence[TextTable]) -> PageFiles:
    """As `PageFiles`; the same ones for each gateway that shows the package's page and languages."""
    if directory != PACKAGED_PAGE or len(tables) > len(_tables()):
        return PageFiles(directory, tables)
    return _packaged()


@cache
def _packaged() -> PageFiles:
    return PageFiles(PACKAGED_PAGE, _tables())


_tables = cache(packaged_tables)
