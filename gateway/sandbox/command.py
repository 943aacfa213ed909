"""Start the command of a sandbox: drop every right, apply the limits, and become the program."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Sequence
from typing import NoReturn

from gateway.sandbox import kernel
from gateway.sandbox.command_filter import filter_command
from gateway.sandbox.protocol import HOME, SandboxLimits

_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LOGNAME": "user",
    "SHELL": "/bin/sh",
    "TERM": "dumb",
    "TMPDIR": "/tmp",  # noqa: S108 - the sandbox has a private one
    "USER": "user",
}
"""The whole environment of a command."""
_FAILURE = 3
"""The descriptor that is closed when the program starts."""
_MOST_DESCRIPTORS = 1 << 16
_LEAST_ADDRESS_SPACE = 4 * 1024**3
"""Runtimes reserve address space that they do not use. The memory in use is limited separately."""
_LOCKED_BYTES = 64 * 1024


def start(argv: Sequence[str], limits: SandboxLimits, output: int, failure: int) -> int:
    """Start the program; returns its process id. It writes to `output`; if it cannot be started, the number
    of the error is written to `failure`."""
    child = os.fork()
    if child == 0:
        _become(argv, limits, output, failure)
    return child


def _become(argv: Sequence[str], limits: SandboxLimits, output: int, failure: int) -> NoReturn:
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(failure, _FAILURE)
        os.set_inheritable(_FAILURE, False)  # noqa: FBT003 - the standard library's signature
        os.closerange(_FAILURE + 1, _MOST_DESCRIPTORS)
        os.chdir(HOME)
        os.umask(0o077)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores them
        _limit(limits)
        kernel.drop_capabilities()
        filter_command()
        os.execvpe(argv[0], list(argv), _ENVIRONMENT)  # noqa: S606 - the command that a person allowed
    except (OSError, ValueError) as error:
        os.write(_FAILURE, str(getattr(error, "errno", None) or 1).encode())
    finally:
        os._exit(127)


def _limit(limits: SandboxLimits) -> None:
    address_space = max(_LEAST_ADDRESS_SPACE, 4 * limits.memory_bytes)
    seconds = limits.processor_seconds
    for kind, soft, hard in (
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_AS, address_space, address_space),
        (resource.RLIMIT_DATA, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        # Counted in the sandbox's user namespace, in which the first process counts too.
        (resource.RLIMIT_NPROC, limits.processes + 1, limits.processes + 1),
        (resource.RLIMIT_MEMLOCK, _LOCKED_BYTES, _LOCKED_BYTES),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        allowed = resource.getrlimit(kind)[1]
        most = hard if allowed == resource.RLIM_INFINITY else min(hard, allowed)
        resource.setrlimit(kind, (min(soft, most), most))
