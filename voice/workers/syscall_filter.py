"""Let the kernel refuse every system call that computing on bytes in memory does not need.

The limits of `voice.workers.sandbox` stop a process from opening descriptors. Other calls need none:
deleting or renaming a file, signalling or reading another process of the same user. This filter refuses
those as well. Linux on x86-64 and AArch64; elsewhere the limits alone apply.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2

_LOAD_WORD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000
"""Refused calls fail with EPERM, so that a library can do without an optional one."""

_PROCESS_FILTERED = ("prlimit64", "tgkill")
"""Allowed for the calling process only: the first argument names the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    architecture: int
    """Its AUDIT_ARCH number."""
    calls: Mapping[str, int]
    """The allowed calls: memory, time, signals within the process, use of open pipes, exit."""


_X86_64 = _Machine(
    architecture=0xC000003E,
    calls={
        "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10,
        "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "writev": 20,
        "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35, "getpid": 39, "exit": 60,
        "uname": 63, "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100,
        "sigaltstack": 131, "setrlimit": 160, "gettid": 186, "futex": 202, "sched_getaffinity": 204,
        "restart_syscall": 219,
        "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "tgkill": 234,
        "set_robust_list": 273, "prlimit64": 302, "getcpu": 309, "getrandom": 318, "membarrier": 324,
        "rseq": 334,
    },
)  # fmt: skip
_AARCH64 = _Machine(
    architecture=0xC00000B7,
    calls={
        "close": 57, "lseek": 62, "read": 63, "write": 64, "writev": 66, "ppoll": 73, "fstat": 80, "exit": 93,
        "exit_group": 94, "futex": 98, "set_robust_list": 99, "nanosleep": 101, "clock_gettime": 113,
        "clock_getres": 114, "clock_nanosleep": 115, "sched_getaffinity": 123, "sched_yield": 124,
        "restart_syscall": 128, "tgkill": 131, "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135,
        "rt_sigreturn": 139, "times": 153, "uname": 160, "getrlimit": 163, "setrlimit": 164, "getrusage": 165,
        "getcpu": 168, "gettimeofday": 169, "getpid": 172, "gettid": 178, "sysinfo": 179, "brk": 214,
        "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226, "madvise": 233, "prlimit64": 261,
        "getrandom": 278, "membarrier": 283, "rseq": 293,
    },
)  # fmt: skip
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def refuse_system_calls() -> bool:
    """Refuse all further system calls of this thread but the allowed ones, permanently; returns whether this
    kind of machine has a filter. Raises OSError when the kernel does not accept it.

    Threads that already run are not affected: call it in a process that has one thread.
    """
    machine = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if machine is None:
        return False
    install_filter(_program(machine, os.getpid()))
    return True


def install_filter(program: bytes) -> None:
    """Apply a filter to this thread and what it starts, permanently. Raises OSError when the kernel does not
    accept it."""
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the count of instructions, padding, and their address.
    header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    filter_header = ctypes.create_string_buffer(header, len(header))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refused to drop privileges")
    if prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(filter_header)), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refused the filter of system calls")


def encoded_filter(lines: Iterable[tuple[int, int, int, int]]) -> bytes:
    """The instructions of the kernel's packet filter, each with its code, two jumps and a value, as bytes."""
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _program(machine: _Machine, pid: int) -> bytes:
    """The filter as instructions of the kernel's packet filter."""
    plain = [number for name, number in machine.calls.items() if name not in _PROCESS_FILTERED]
    own = [machine.calls[name] for name in _PROCESS_FILTERED]
    lines = [
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, machine.architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
    ]
    # The end of the program: refuse, allow, check the first argument, a process id: 0 is itself.
    check = 2
    for index, number in enumerate((*plain, *own)):
        left = len(plain) + len(own) - index - 1
        lines.append((_IF_EQUAL, left + (1 if number in plain else check), 0, number))
    lines += [
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT_AT),
        (_IF_EQUAL, 1, 0, pid),
        (_IF_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return encoded_filter(lines)
