"""How much memory is free: the kernel's figure, and the limit of a container."""

from __future__ import annotations

from pathlib import Path

from gateway.runtime.machine import this_machine

MIB = 1024**2


def system(root: Path, *, available_kib: int, **cgroup: str) -> Path:
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text(f"MemTotal: 99999999 kB\nMemAvailable:  {available_kib} kB\n")
    (root / "sys/fs/cgroup").mkdir(parents=True)
    for name, text in cgroup.items():
        (root / "sys/fs/cgroup" / name.replace("_", ".")).write_text(text)
    return root


def test_without_a_limit_the_available_memory_is_free(tmp_path: Path) -> None:
    root = system(tmp_path, available_kib=4096, memory_max="max\n")

    assert this_machine(root).free_bytes == 4 * MIB


def test_a_containers_limit_counts_without_what_it_uses_and_with_cached_files(tmp_path: Path) -> None:
    root = system(
        tmp_path,
        available_kib=999_999,
        memory_max=f"{100 * MIB}\n",
        memory_current=f"{90 * MIB}\n",
        memory_stat=f"anon 5\ninactive_file {20 * MIB}\n",
    )

    assert this_machine(root).free_bytes == 30 * MIB


def test_where_nothing_is_known_half_of_all_memory_counts_as_free(tmp_path: Path) -> None:
    machine = this_machine(tmp_path)

    assert machine.free_bytes > 64 * MIB
    assert machine.cores >= 1
