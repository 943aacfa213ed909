"""Processor seconds of other processes, user and system, all threads. Linux."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PARENT, _OWN, _ENDED_CHILDREN = 1, slice(11, 13), slice(13, 15)
"""Places in /proc/PID/stat, counted from the field after the program's name."""


def of_process(pid: int) -> float:
    """Those of one process."""
    return _seconds(_stat(Path(f"/proc/{pid}"))[_OWN])


def of_server(pid: int) -> float:
    """Those of a process and of its children, also of the ended ones."""
    own = _stat(Path(f"/proc/{pid}"))
    children = sum(_seconds(stat[_OWN]) for stat in _all() if int(stat[_PARENT]) == pid)
    return _seconds(own[_OWN]) + _seconds(own[_ENDED_CHILDREN]) + children


def _all() -> Iterator[list[str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield _stat(folder)
        except OSError:  # it has ended
            continue


def _stat(folder: Path) -> list[str]:
    # The name may contain spaces and brackets.
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()


def _seconds(ticks: list[str]) -> float:
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
