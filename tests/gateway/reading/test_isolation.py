"""The copy of the reader process that reads one file: what it can reach, and how it ends."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.domain.clock import SystemClock

FILTERED = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


@pytest.mark.skipif(not FILTERED, reason="there is no filter of system calls for this machine")
def test_an_isolated_copy_reaches_nothing_and_its_parent_survives_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("untouched")
    command = (sys.executable, "-m", "tests.gateway.reading.isolated_program", str(tmp_path))
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    assert output.splitlines() == [
        "{'succeeded': []}",
        "CPU time limit exceeded, out of time: True",
        "{'memory': 'limited'}",
        "Segmentation fault, out of time: False",
        "Killed, out of time: False",  # it wrote without an end
    ]
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "untouched")]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's list of processes")
async def test_an_isolated_copy_ends_with_the_process_that_made_it() -> None:
    clock = SystemClock()
    maker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.gateway.reading.isolated_program", "--loop")
    )
    while not (copies := children_of(maker.pid)):
        await clock.sleep(0.01)
    maker.kill()
    await maker.wait()
    while any(map(is_running, copies)):
        await clock.sleep(0.01)
    assert len(copies) == 1


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    """False for a process that has ended and that no process has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
