"""Measure what the processes of a sandbox use, from its first process.

The kernel's limits hold for one process; a command may start many. Their sum is measured here, some times a
second, so a command can exceed it for that long.
"""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.domain.frozen import dataclass

_PROCESSES = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_LEAST_FREE_BYTES = 64 * 1024**2
_FIRST_CPU_FIELD, _CPU_FIELDS, _RESIDENT_FIELD = 11, 4, 21
"""In /proc/PID/stat behind the name: user, system, and both of ended children; and the pages in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Of all processes but this one."""

    processes: int
    processor_seconds: float
    memory_bytes: int
    """At most this much; what processes share is counted for each."""


def measured() -> Usage:
    """The current usage."""
    count, ticks, pages = 0, 0, 0
    for name in _others():
        fields = _read(_PROCESSES / name / "stat").rpartition(b")")[2].split()
        if len(fields) > _RESIDENT_FIELD:
            count += 1
            ticks += sum(map(int, fields[_FIRST_CPU_FIELD : _FIRST_CPU_FIELD + _CPU_FIELDS]))
            pages += int(fields[_RESIDENT_FIELD])
    ended = os.times()
    seconds = ticks / _TICKS + ended.children_user + ended.children_system
    return Usage(processes=count, processor_seconds=seconds, memory_bytes=pages * _PAGE)


def exact_memory() -> int:
    """The memory of all processes but this one in bytes, swapped out parts included, each shared page counted
    once."""
    total = 0
    for name in _others():
        for line in _read(_PROCESSES / name / "smaps_rollup").splitlines():
            if line.startswith((b"Pss:", b"SwapPss:")):
                total += int(line.split()[1]) * 1024
    return total


def is_machine_full() -> bool:
    """Whether the machine is nearly out of memory, whatever uses it."""
    for line in _read(_PROCESSES / "meminfo").splitlines():
        if line.startswith(b"MemAvailable:"):
            return int(line.split()[1]) * 1024 < _LEAST_FREE_BYTES
    return False


def _others() -> list[str]:
    """The ids of all processes but this one."""
    own = str(os.getpid())
    with os.scandir(_PROCESSES) as entries:
        return [entry.name for entry in entries if entry.name.isdecimal() and entry.name != own]


def _read(path: Path) -> bytes:
    """The content; empty for a process that has just ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
