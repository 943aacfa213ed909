"""The program of a sandbox process: `--parent-pid N`, with a request on its standard input.

This process makes the namespaces and their first process, and waits for it. When its input ends, because the
gateway stops the command or is gone, it kills that process, and with it all others.

All modules are loaded before any right is dropped: afterwards no file of Python can be read.
"""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

from gateway.sandbox import kernel
from gateway.sandbox.first_process import USER_ID, be_first_process
from gateway.sandbox.protocol import COMMAND_USER, request_from

_READ_BYTES = 1 << 16
_NICE = 19
_KILL_FIRST_IF_FULL = b"1000"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def main(arguments: list[str]) -> int:
    """Run one command. Returns 0 after a report, else 1."""
    parent = int(arguments[1])
    kernel.die_with_parent(9)
    if os.getppid() != parent:
        return 1
    request = request_from(_line())
    folder = os.open(request.folder, _FOLDER)
    try:
        _drop_root()
        _yield_to_others()
        kernel.leave_keyring()
        _enter_namespaces()
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        return 1
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        # In its namespace this process has no id: the end of the pipe shows whether it is still there.
        be_first_process(request, folder, lambda: bool(select.select([read], [], [], 0)[0]))
    os.close(read)
    return _wait(child)


def _line() -> bytes:
    """The first line of the input; no byte after it is read."""
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(0, _READ_BYTES)
        if not data:
            sys.exit(1)
        line += data
    return line


def _drop_root() -> None:
    if os.getuid() != 0:
        return
    os.setgroups([])
    os.setresgid(COMMAND_USER, COMMAND_USER, COMMAND_USER)
    os.setresuid(COMMAND_USER, COMMAND_USER, COMMAND_USER)
    # Otherwise the files in /proc of a process that was root's stay root's.
    kernel.set_dumpable(dumpable=True)


def _yield_to_others() -> None:
    """Let the gateway run first, and let the kernel end commands first when memory is full."""
    os.nice(_NICE)
    Path("/proc/self/oom_score_adj").write_bytes(_KILL_FIRST_IF_FULL)


def _enter_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    kernel.new_namespaces()
    Path("/proc/self/setgroups").write_bytes(b"deny")
    Path("/proc/self/uid_map").write_bytes(f"{USER_ID} {user} 1".encode())
    Path("/proc/self/gid_map").write_bytes(f"{USER_ID} {group} 1".encode())


def _wait(child: int) -> int:
    """Wait for the first process, and kill it when the input ends."""
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    poll.register(ended, select.POLLIN)
    while not any(number == ended for number, _ in poll.poll()):
        if not os.read(0, _READ_BYTES):
            os.kill(child, 9)
            break
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
