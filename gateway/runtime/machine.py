"""Read how much memory is free on this machine and how many processor cores this process may use.

On Linux the limits of a container count too. Not here: what is done with it (`gateway.app.embedded_model`).
"""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.domain.frozen import dataclass

_UNLIMITED_BYTES = 1 << 60
"""A cgroup without a limit reports a number near 2**63 on some kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a process may take."""

    free_bytes: int
    """Memory without swap. Where the system does not say how much is free: half of all memory."""
    cores: int


def this_machine(root: Path = Path("/")) -> Machine:
    """The free memory and the cores now. `root` replaces the folder of /proc and /sys."""
    free = [_available(root / "proc/meminfo"), _left_in_container(root / "sys/fs/cgroup")]
    known = [size for size in free if size is not None]
    return Machine(free_bytes=min(known) if known else _half_of_all(), cores=_cores())


def _available(meminfo: Path) -> int | None:
    """MemAvailable, in bytes."""
    try:
        lines = meminfo.read_text("ascii").splitlines()
        (kibibytes,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return int(kibibytes) * 1024
    except (OSError, ValueError, IndexError):
        return None


def _left_in_container(cgroup: Path) -> int | None:
    """The rest of the memory limit of cgroups v2; None without a limit. Cached files count as free."""
    try:
        limit = int((cgroup / "memory.max").read_text("ascii"))
        used = int((cgroup / "memory.current").read_text("ascii"))
        statistics = (cgroup / "memory.stat").read_text("ascii").splitlines()
        cached = sum(int(line.split()[1]) for line in statistics if line.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):
        return None
    return max(0, limit - used + cached) if limit < _UNLIMITED_BYTES else None


def _half_of_all() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (OSError, ValueError, AttributeError):
        return 0


def _cores() -> int:
    # Linux alone knows which cores this process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
