"""The process of a sandbox, and what is left when it is cancelled or its gateway is killed: nothing.

Covers: gateway/sandbox/process.py, gateway/sandbox/sandbox_main.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.sandbox.process import SandboxBroken, run_in_sandbox, sandbox_problem
from gateway.sandbox.protocol import SandboxRequest
from pipeline.domain.clock import SystemClock
from tests.support.sandbox import LIMITS, Box, processes_with

_TREE = "trap '' TERM HUP; (setsid sh -c 'sleep {mark}' &); sleep {mark} & echo begun; sleep {mark}; echo no"
_PARENT = """
import asyncio, sys
from gateway.sandbox.process import run_in_sandbox
from gateway.sandbox.protocol import SandboxRequest
from tests.support.sandbox import LIMITS
async def begun(data):
    sys.stdout.write("begun\\n")
    sys.stdout.flush()
request = SandboxRequest(argv=("sh", "-c", sys.argv[2]), folder=sys.argv[1], hidden=(), limits=LIMITS)
asyncio.run(run_in_sandbox(request, begun))
"""


def _request(sandbox: Box, script: str) -> SandboxRequest:
    return SandboxRequest(argv=("sh", "-c", script), folder=str(sandbox.folder), hidden=(), limits=LIMITS)


def _zombies() -> list[str]:
    """The ended processes of this one that were not waited for."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            found += [path.parent.name] if (state, parent) == ("Z", str(os.getpid())) else []
    return found


def _mark(number: int) -> str:
    """A word that no other process of this machine has, and that `sleep` takes for seconds."""
    return f"{number}.{os.getpid()}"


async def test_cancelling_ends_the_whole_tree_leaves_no_zombie_and_changes_no_file(sandbox: Box) -> None:
    await sandbox.sh("echo before > a")
    begun = asyncio.Event()

    async def note(data: bytes) -> None:
        if b"begun" in data:
            begun.set()

    mark, zombies = _mark(16180339), _zombies()
    script = "echo after > a;" + _TREE.format(mark=mark)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run_in_sandbox(_request(sandbox, script), note))
        await begun.wait()
        assert len(processes_with(mark)) >= 3
        running.cancel()
    assert running.cancelled()
    assert processes_with(mark) == []
    assert processes_with(str(sandbox.folder)) == []
    assert set(_zombies()) <= set(zombies)
    assert sandbox.kept() == {"a": b"before\n"}


async def test_nothing_runs_on_when_the_gateway_is_killed(sandbox: Box) -> None:
    mark = _mark(57721566)
    script = _TREE.format(mark=mark)
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PARENT, str(sandbox.folder), script),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert parent.stdout is not None
    assert await parent.stdout.readline() == b"begun\n"
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    async with asyncio.timeout(30):
        while processes_with(mark):
            await SystemClock().sleep(0.02)


async def test_output_comes_while_the_command_runs(sandbox: Box) -> None:
    parts: list[bytes] = []
    first = asyncio.Event()

    async def note(data: bytes) -> None:
        parts.append(data)
        first.set()

    async with asyncio.TaskGroup() as group:
        running = group.create_task(run_in_sandbox(_request(sandbox, "echo one; sleep 1000"), note))
        await first.wait()
        running.cancel()
    assert parts == [b"one\n"]


async def test_a_folder_that_is_not_there_is_an_error_with_words(sandbox: Box) -> None:
    request = SandboxRequest(argv=("true",), folder=str(sandbox.folder / "none"), hidden=(), limits=LIMITS)

    async def ignore(_data: bytes) -> None:
        return

    with pytest.raises(SandboxBroken, match="No such file"):
        await run_in_sandbox(request, ignore)


def test_a_machine_that_refuses_is_said_to_refuse_with_a_remedy(
    sandbox: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sandbox_problem() == ""
    # A program in place of the sandbox's that fails as a kernel without namespaces would make it fail.
    failing = (
        sys.executable,
        "-c",
        "import sys; sys.stderr.write('new namespaces: refused\\n'); sys.exit(1)",
    )
    monkeypatch.setattr("gateway.sandbox.process._command", lambda: failing)
    problem = sandbox_problem()
    assert problem.startswith("new namespaces: refused; ")
    assert "user.max_user_namespaces" in problem
