"""A program that imports every module of ours as if on macOS: with the name of the system changed, and
without the parts of the standard library that macOS lacks. It prints their number. Nothing is run there.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("adapters", "gateway", "pipeline", "voice")
LINUX_ONLY = {
    os: (
        *("sched_getaffinity", "sched_setaffinity", "pidfd_open", "memfd_create", "O_TMPFILE", "O_PATH"),
        *("fdatasync", "posix_fadvise", "copy_file_range", "getrandom", "eventfd", "splice", "O_DIRECT"),
    ),
    resource: ("RUSAGE_THREAD", "prlimit", "RLIMIT_NICE", "RLIMIT_RTPRIO"),
    select: ("epoll", "EPOLLIN"),
    signal: ("SIGRTMIN", "SIGRTMAX", "SIGPWR", "sigwaitinfo", "sigtimedwait"),
    socket: ("SO_PEERCRED", "AF_NETLINK", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "TCP_USER_TIMEOUT"),
    time: ("CLOCK_BOOTTIME",),
}


def ours() -> Iterator[str]:
    """The names of the modules of the project, which is the working folder."""
    for package in PACKAGES:
        for path in sorted(Path(package).rglob("*.py")):
            if path.stem != "__main__":
                yield ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def main() -> None:
    """Exits with an error where a module cannot be imported."""
    gc.disable()  # all that is imported stays
    names = list(ours())
    for name in names:  # loads the libraries, which are not what is tested
        importlib.import_module(name)
    for name in list(sys.modules):
        if name.partition(".")[0] in PACKAGES:
            del sys.modules[name]
    sys.platform = "darwin"
    for module, missing in LINUX_ONLY.items():
        for name in missing:
            if hasattr(module, name):
                delattr(module, name)
    for name in names:
        importlib.import_module(name)
    machine = importlib.import_module("gateway.runtime.machine").this_machine(Path("/nonexistent"))
    assert machine.cores > 0, machine
    assert machine.free_bytes > 0, machine
    sys.stdout.write(f"{len(names)}\n")


if __name__ == "__main__":
    main()
