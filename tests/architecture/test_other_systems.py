"""Nothing that only Linux has is needed to import a module: elsewhere a feature may be missing, no more.

Every module is imported with the name of the system changed, and without the parts of the standard library
that macOS lacks (`tests/support/other_system_child.py`). Nothing is run there.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.forked_children import run_child


async def test_every_module_can_be_imported_on_macos(tmp_path: Path) -> None:
    # In a fork of a process that has the libraries.
    code = await run_child("tests.support.other_system_child", log=tmp_path / "log")

    printed = (tmp_path / "log").read_text("utf-8")
    assert code == 0, printed[-2_000:]
    assert int(printed.split()[-1]) > 300
