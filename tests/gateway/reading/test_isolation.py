"""The copy of the reader process that reads one file: what it can reach, and how it ends."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

FILTERED = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


@pytest.mark.skipif(not FILTERED, reason="there is no filter of system calls for this machine")
def test_an_isolated_copy_reaches_nothing_and_its_parent_survives_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("untouched")
    command = (sys.executable, "-m", "tests.gateway.reading.isolated_program", str(tmp_path))
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert output.splitlines() == [
        "{'succeeded': []}",
        "signal SIGXCPU, out of time: True",
        "{'memory': 'limited'}",
        "signal SIGSEGV, out of time: False",
        "signal SIGKILL, out of time: False",  # it wrote without an end
    ]
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "untouched")]
