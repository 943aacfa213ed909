"""Each worker of pytest-xdist rewrites the assertions of a share of the tests before it collects all of them.

Without it every worker of a first run, or of one after many changes, rewrites every module, at the same time
as the others: half of its collection. What was rewritten is kept on disk by pytest; a share that another
worker has not finished is rewritten twice, as before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def pytest_configure(config: pytest.Config) -> None:
    """In a worker, rewrite its share of what is to be collected. Nothing is executed."""
    worker = getattr(config, "workerinput", None)
    if worker is None or sys.dont_write_bytecode or config.getoption("assertmode") != "rewrite":
        return
    number = int(worker["workerid"].removeprefix("gw"))
    for file in sorted(_test_files(config))[number :: worker["workercount"]]:
        rewrite_once(file, config)


def rewrite_once(file: Path, config: pytest.Config) -> None:
    """Rewrite a module of tests, unless that was done since it was changed."""
    rewritten = rewrite.get_cache_dir(file) / (file.stem + rewrite.PYC_TAIL)
    # Whether it is of this content is checked when the module is imported.
    if rewritten.exists() and rewritten.stat().st_mtime > file.stat().st_mtime:
        return
    rewritten.parent.mkdir(exist_ok=True)
    source_hash, code = rewrite._rewrite_test(file, config)
    rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, rewritten)


def _test_files(config: pytest.Config) -> Iterator[Path]:
    for argument in config.args:
        place = config.rootpath / argument.partition("::")[0]
        yield from place.rglob("test_*.py") if place.is_dir() else (place,)
