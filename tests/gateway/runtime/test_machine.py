"""How much memory is free: the kernel's figure, and the limit of a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.runtime.machine import this_machine

MIB = 1024**2


def system(root: Path, *, available_kib: int, group: str = "/", **files: str) -> Path:
    """A folder with the files of /proc and /sys for a process in `group`, which has `files`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: 99999999 kB\nMemAvailable:  {available_kib} kB\n")
    (root / "proc/self/cgroup").write_text(f"0::{group}\n")
    folder = root / "sys/fs/cgroup" / group.lstrip("/")
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return root


def test_without_a_limit_the_available_memory_is_free(tmp_path: Path) -> None:
    root = system(tmp_path, available_kib=4096, memory_max="max\n", memory_current="5\n")

    assert this_machine(root).free_bytes == 4 * MIB


@pytest.mark.parametrize("group", ["/", "/system.slice/parlour.service"])
@pytest.mark.parametrize("limit", ["memory_max", "memory_high"])
def test_the_limit_of_a_container_or_service_counts_without_what_it_uses_and_with_cached_files(
    tmp_path: Path, group: str, limit: str
) -> None:
    files = {
        limit: f"{100 * MIB}\n",
        "memory_current": f"{90 * MIB}\n",
        "memory_stat": f"anon 5\ninactive_file {20 * MIB}\n",
    }
    root = system(tmp_path, available_kib=999_999, group=group, **files)

    assert this_machine(root).free_bytes == 30 * MIB


def test_where_nothing_is_known_half_of_all_memory_counts_as_free(tmp_path: Path) -> None:
    machine = this_machine(tmp_path)

    assert machine.free_bytes > 64 * MIB
    assert machine.cores >= 1
