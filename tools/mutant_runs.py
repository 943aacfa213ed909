"""Copies of the project in which tests run on one fault at a time.

Not here: which faults there are, and what the result means. The working tree is never written to.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from pathlib import Path
from time import perf_counter
from typing import Self, TypeVar

_NOT_COPIED = (".git", ".venv", ".*_cache", ".hypothesis", "build", "data", "data-*", "dist", "models")
"""At the root; what a run of the program, of a tool or of a test leaves there."""
_SHOWN_LINES = 25

_Result = TypeVar("_Result")
_PASSED, _NO_TESTS = 0, 5
"""What pytest exits with."""


class Verdict(Enum):
    """What the tests said of a source."""

    PASSED = auto()
    FAILED = auto()
    TIMED_OUT = auto()
    NO_TESTS = auto()


class Workspace:
    """One copy of the project. Runs one thing at a time."""

    def __init__(self, root: Path, place: Path) -> None:
        self._root = place
        self._output = place.with_suffix(".log")
        self._running: subprocess.Popen[bytes] | None = None
        self._changes = 0
        at_root, below = (shutil.ignore_patterns("__pycache__", *names) for names in (_NOT_COPIED, ()))
        shutil.copytree(
            root,
            place,
            ignore=lambda folder, names: (at_root if folder == str(root) else below)(folder, names),
        )

    def run(self, tests: Sequence[str], limit_s: float) -> tuple[Verdict, float]:
        """Run pytest until the first failure; how it ended, and after how many seconds."""
        # The working directory comes first on the path of `python -m`, before an editable installation.
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        begun = perf_counter()
        # A file, not a pipe: whatever a test leaves running would hold a pipe open.
        with self._output.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            self._running = process
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return Verdict.TIMED_OUT, perf_counter() - begun
            finally:
                self.stop()
                process.wait()
        verdicts = {_PASSED: Verdict.PASSED, _NO_TESTS: Verdict.NO_TESTS}
        return verdicts.get(process.returncode, Verdict.FAILED), perf_counter() - begun

    def reported(self) -> str:
        """The last lines of the last run."""
        lines = self._output.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_SHOWN_LINES:])

    def run_changed(
        self, path: str, source: str, tests: Sequence[str], limit_s: float
    ) -> tuple[Verdict, float]:
        """As `run`, with `source` in the place of the file `path`."""
        kept = (self._root / path).read_bytes()
        try:
            self._write(path, source.encode())
            return self.run(tests, limit_s)
        finally:
            self._write(path, kept)

    def stop(self) -> None:
        """End what runs, and what it started."""
        process = self._running
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    def _write(self, path: str, source: bytes) -> None:
        # Byte code is known to be of this source by its seconds and its size alone: each version has an age.
        file = self._root / path
        file.write_bytes(source)
        self._changes += 1
        age = 1_000_000_000 + self._changes
        os.utime(file, (age, age))


class Pool:
    """Several workspaces below `folder`, in which jobs are done side by side. A context manager."""

    def __init__(self, root: Path, folder: Path, size: int) -> None:
        self._workspaces = [Workspace(root, folder / str(number)) for number in range(size)]
        self._free: queue.SimpleQueue[Workspace] = queue.SimpleQueue()
        for workspace in self._workspaces:
            self._free.put(workspace)
        self._threads = ThreadPoolExecutor(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what is not done yet."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for workspace in self._workspaces:
            workspace.stop()
        self._threads.shutdown()

    def do(self, jobs: Iterable[Callable[[Workspace], _Result]]) -> Iterator[_Result]:
        """Start all the jobs; their results, in the order of the jobs."""
        begun = [self._threads.submit(self._one, job) for job in jobs]
        return (future.result() for future in begun)

    def _one(self, job: Callable[[Workspace], _Result]) -> _Result:
        workspace = self._free.get()
        try:
            return job(workspace)
        finally:
            self._free.put(workspace)
