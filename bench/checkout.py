"""Check out another commit of this project, to measure it beside the present one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.report import ROOT, BenchUnavailable


@contextmanager
def checked_out(commit: str, folder: Path) -> Iterator[Path]:
    """The files of `commit` in `folder`, which is removed afterwards; it runs with the present environment.

    Raises BenchUnavailable if git does not know the commit.
    """
    _git("worktree", "add", "--detach", str(folder), commit)
    try:
        yield folder
    finally:
        _git("worktree", "remove", "--force", str(folder))


def _git(*arguments: str) -> None:
    done = subprocess.run(("git", "-C", str(ROOT), *arguments), capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["git failed"])[-1]
        raise BenchUnavailable(f"the commit to compare with cannot be checked out: {reason}")
