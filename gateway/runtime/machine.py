"""Read how much memory is free on this machine and how many processor cores this process may use.

On Linux the limits of a container or a service count too. Not here: what is done with it
(`gateway.app.embedded_model`).
"""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a process may take."""

    free_bytes: int
    """Memory without swap. Where the system does not say how much is free: half of all memory."""
    cores: int


def this_machine(root: Path = Path("/")) -> Machine:
    """The free memory and the cores now. `root` replaces the folder of /proc and /sys."""
    free = [_available(root / "proc/meminfo"), *map(_left_in_group, _groups(root))]
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


def _groups(root: Path) -> list[Path]:
    """The folders of this process's control group (cgroups v2) and of those that it is in."""
    top = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return [top]
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    parts = Path(own).parts
    return [top.joinpath(*parts[:length]) for length in range(len(parts) + 1)]


def _left_in_group(group: Path) -> int | None:
    """The rest of the group's memory limit; None without a limit. Cached files count as free."""
    limits = [size for name in ("memory.max", "memory.high") if (size := _size(group / name)) is not None]
    used = _size(group / "memory.current")
    if not limits or used is None:
        return None
    return max(0, min(limits) - used + _cached(group / "memory.stat"))


def _size(file: Path) -> int | None:
    """The bytes in `file`; None if it says `max`, as without a limit, or is not there."""
    try:
        return int(file.read_text("ascii"))
    except (OSError, ValueError):
        return None


def _cached(statistics: Path) -> int:
    try:
        lines = statistics.read_text("ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):
        return 0


def _half_of_all() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (OSError, ValueError, AttributeError):
        return 0


def _cores() -> int:
    # Linux alone knows which cores this process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
