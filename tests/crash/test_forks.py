"""A process that is forked and not executed: it has what an executed one has, and its end is reported."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.forked_children import child_up, run_child
from tests.support.gateway_forks import fork_gateway

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone"),
]

_CHILD = "tests.support.described_child"


async def test_it_has_a_session_a_folder_and_an_environment_and_nothing_of_other_forks(
    tmp_path: Path,
) -> None:
    async with child_up(_CHILD, log=tmp_path / "first.log"):
        child = await fork_gateway(
            ["0"], folder=tmp_path, env={"ONLY": "this"}, log=tmp_path / "second.log", module=_CHILD
        )
        assert await child.wait() == 0
    assert json.loads((tmp_path / "second.log").read_text("utf-8")) == {
        "session": True,
        "folder": str(tmp_path),
        "environment": ["ONLY"],
        "threads": 1,
        "descriptors": 3,
        "handled": [],
    }


async def test_the_end_of_each_is_reported_while_others_run(tmp_path: Path) -> None:
    async with child_up(_CHILD, log=tmp_path / "a.log") as killed, child_up(_CHILD, log=tmp_path / "b.log"):
        assert await run_child(_CHILD, "7", log=tmp_path / "c.log") == 7
        async with asyncio.timeout(60):
            assert killed.returncode is None
            os.kill(killed.pid, signal.SIGKILL)
            assert await killed.wait() == -signal.SIGKILL


async def test_one_program_forks_them_all(tmp_path: Path) -> None:
    parents = []
    for name in ("a.log", "b.log"):
        async with child_up(_CHILD, log=tmp_path / name) as child:
            parents.append(_parent(child.pid))
    assert parents[0] == parents[1] not in (1, os.getpid())
    # The first worker that needed the program started it.
    starter = _parent(parents[0])
    assert starter == os.getpid() or _parent(starter) == os.getppid()


def _parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return int(fields[1])
