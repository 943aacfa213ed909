"""Nothing that only Linux has is needed to import a module: elsewhere a feature may be missing, no more.

Every module is imported with the name of the system changed, and without the parts of the standard library
that macOS lacks. Nothing is run there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_IMPORT_ALL = """
import importlib, os, pathlib, resource, select, signal, socket, sys, time

PACKAGES = ("adapters", "gateway", "pipeline", "voice")
LINUX_ONLY = {
    os: ("sched_getaffinity", "sched_setaffinity", "pidfd_open", "memfd_create", "O_TMPFILE", "O_PATH",
         "fdatasync", "posix_fadvise", "copy_file_range", "getrandom", "eventfd", "splice", "O_DIRECT"),
    resource: ("RUSAGE_THREAD", "prlimit", "RLIMIT_NICE", "RLIMIT_RTPRIO"),
    select: ("epoll", "EPOLLIN"),
    signal: ("SIGRTMIN", "SIGRTMAX", "SIGPWR", "sigwaitinfo", "sigtimedwait"),
    socket: ("SO_PEERCRED", "AF_NETLINK", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "TCP_USER_TIMEOUT"),
    time: ("CLOCK_BOOTTIME",),
}

def ours():
    for package in PACKAGES:
        for path in sorted(pathlib.Path(package).rglob("*.py")):
            if path.stem != "__main__":
                yield ".".join(path.with_suffix("").parts).removesuffix(".__init__")

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

from gateway.runtime.machine import this_machine
from pathlib import Path

machine = this_machine(Path("/nonexistent"))
assert machine.cores > 0 and machine.free_bytes > 0, machine
print(len(names))
"""


def test_every_module_can_be_imported_on_macos() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    assert int(done.stdout.split()[-1]) > 300
