"""The filter of system calls for commands: programs may do all but what could reach out of a sandbox.

The namespaces are the barrier. The filter keeps a command from the parts of the kernel whose faults have
opened it before: new namespaces, mounts, debugging, keyrings, BPF, io_uring. Calls that are newer than the
list fail as in a kernel that does not have them. x86-64 and AArch64.
"""

from __future__ import annotations

import errno
import platform
from collections.abc import Mapping

from pipeline.domain.frozen import dataclass
from voice.workers.syscall_filter import encoded_filter, install_filter

_LOAD, _IF_EQUAL, _IF_GREATER, _AND, _RETURN = 0x20, 0x15, 0x25, 0x54, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT, _SECOND_ARGUMENT_AT = 0, 4, 16, 24
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NEWEST = 462
"""The newest call that the list below has been compared with."""
_NAMESPACE_FLAGS = 0x7E020000
"""Of `clone`: all new namespaces."""
_LOCAL_SOCKETS = 1
_PUSH_INPUT, _CONSOLE_INPUT = 0x5412, 0x541C
"""TIOCSTI and TIOCLINUX, with which a process types into a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    architecture: int
    clone: int
    socket: int
    ioctl: int
    refused: Mapping[str, int]


_BOTH = {
    "pidfd_getfd": 438, "process_madvise": 440, "quotactl_fd": 443, "memfd_secret": 447,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "mount_setattr": 442, "statmount": 457, "listmount": 458,
}  # fmt: skip
_X86_64 = _Machine(
    architecture=0xC000003E, clone=56, socket=41, ioctl=16,
    refused={
        **_BOTH,
        # Other processes, and what other processes have.
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "add_key": 248, "request_key": 249, "keyctl": 250,
        # The file system's shape.
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
        "open_by_handle_at": 304, "name_to_handle_at": 303, "fanotify_init": 300, "quotactl": 179,
        # Memory that no limit counts.
        "memfd_create": 319, "shmget": 29, "shmat": 30, "msgget": 68, "mq_open": 240,
        # The kernel and the machine.
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "kexec_load": 246, "kexec_file_load": 320,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "reboot": 169, "swapon": 167,
        "swapoff": 168, "acct": 163, "settimeofday": 164, "clock_settime": 227, "clock_adjtime": 305,
        "adjtimex": 159, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "syslog": 103,
        "lookup_dcookie": 212, "modify_ldt": 154, "uselib": 134, "vhangup": 153, "nfsservctl": 180,
    },
)  # fmt: skip
_AARCH64 = _Machine(
    architecture=0xC00000B7, clone=220, socket=198, ioctl=29,
    refused={
        **_BOTH,
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "add_key": 217, "request_key": 218, "keyctl": 219,
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268,
        "open_by_handle_at": 265, "name_to_handle_at": 264, "fanotify_init": 262, "quotactl": 60,
        "memfd_create": 279, "shmget": 194, "shmat": 196, "msgget": 186, "mq_open": 180,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "kexec_load": 104, "kexec_file_load": 294,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "reboot": 142, "swapon": 224,
        "swapoff": 225, "acct": 89, "settimeofday": 170, "clock_settime": 112, "clock_adjtime": 266,
        "adjtimex": 171, "sethostname": 161, "setdomainname": 162, "syslog": 116, "lookup_dcookie": 18,
        "nfsservctl": 42, "vhangup": 58,
    },
)  # fmt: skip
_CLONE3 = 435
"""Its flags are in memory, which a filter cannot read: it fails as unknown, and libraries use `clone`."""
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}


def filter_command() -> None:
    """Apply the filter to this thread and all programs that it starts, permanently. Raises OSError, also on
    other kinds of machines."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {platform.machine()}")
    install_filter(encoded_filter(_lines(machine)))


def _lines(machine: _Machine) -> list[tuple[int, int, int, int]]:
    """The instructions. Each check jumps over its own answer only."""
    missing, refused = _FAIL | errno.ENOSYS, _FAIL | errno.EPERM
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, machine.architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        # Also the second numbering of x86-64, whose numbers are very high.
        (_IF_GREATER, 0, 1, _NEWEST),
        (_RETURN, 0, 0, missing),
        (_IF_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, missing),
    ]
    for number in machine.refused.values():
        lines += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, refused)]
    return [
        *lines,
        (_IF_EQUAL, 0, 5, machine.clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_AND, 0, 0, _NAMESPACE_FLAGS),
        (_IF_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, refused),
        (_RETURN, 0, 0, _ALLOW),
        (_IF_EQUAL, 0, 4, machine.socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_IF_EQUAL, 1, 0, _LOCAL_SOCKETS),
        (_RETURN, 0, 0, _FAIL | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
        (_IF_EQUAL, 0, 4, machine.ioctl),
        (_LOAD, 0, 0, _SECOND_ARGUMENT_AT),
        (_IF_EQUAL, 1, 0, _PUSH_INPUT),
        (_IF_EQUAL, 0, 1, _CONSOLE_INPUT),
        (_RETURN, 0, 0, refused),
        (_RETURN, 0, 0, _ALLOW),
    ]
