"""Run commands in the real sandbox for tests, which are skipped where the kernel refuses it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gateway.sandbox.folders import owned_folder
from gateway.sandbox.process import run_in_sandbox, sandbox_problem
from gateway.sandbox.protocol import CURRENT, SandboxLimits, SandboxRequest
from pipeline.tools.command_end import CommandEnd

MB = 1_000_000
LIMITS = SandboxLimits(
    seconds=300.0,
    processor_seconds=60,
    memory_bytes=128 * MB,
    processes=24,
    open_files=64,
    file_bytes=10 * MB,
    disk_bytes=20 * MB,
    files=200,
    output_bytes=100_000,
)


@cache
def problem() -> str:
    """Why this machine has no sandbox; empty if it has one."""
    return sandbox_problem()


def require_sandbox() -> None:
    """Skip the test where the kernel refuses the sandbox."""
    if problem():
        pytest.skip(f"no sandbox here: {problem()}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that was run."""

    output: bytes
    end: CommandEnd

    @property
    def text(self) -> str:
        return self.output.decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The folder of one conversation."""

    folder: Path
    hidden: tuple[str, ...] = ()

    async def run(self, *argv: str, **limits: Any) -> Ran:
        """Run a command under `LIMITS`, or others that are given."""
        request = SandboxRequest(
            argv=argv, folder=str(self.folder), hidden=self.hidden, limits=replace(LIMITS, **limits)
        )
        output, end = await run_in_sandbox(request, _ignore)
        return Ran(output=output, end=end)

    async def sh(self, script: str, **limits: Any) -> Ran:
        """Run a shell script."""
        return await self.run("sh", "-c", script, **limits)

    async def python(self, program: str, **limits: Any) -> Ran:
        """Run a Python program with the machine's Python; skips the test where that has none."""
        if not _has_python():
            pytest.skip("no python3 in the system folders")
        return await self.run("python3", "-c", program, **limits)

    def kept(self) -> dict[str, bytes]:
        """The files that are kept, by path."""
        current = self.folder / CURRENT
        paths = [path for path in current.rglob("*") if path.is_file() and not path.is_symlink()]
        return {str(path.relative_to(current)): path.read_bytes() for path in paths}


@cache
def _has_python() -> bool:
    return any(Path(place, "python3").exists() for place in ("/usr/bin", "/usr/local/bin"))


@contextmanager
def box() -> Iterator[Box]:
    """A new conversation's folder; skips the test where there is no sandbox."""
    require_sandbox()
    with owned_folder() as folder:
        yield Box(folder=folder)


def processes_with(word: str) -> list[int]:
    """The ids of this machine's processes that have `word` in their command line."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            try:
                line = (path / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(int(path.name))
    return found


async def _ignore(_data: bytes) -> None:
    """Ignore the output as it comes."""
