"""The calls of the Linux kernel that a sandbox is made of and that Python 3.11 does not have.

Each raises OSError with words about what was tried. Nothing here decides anything.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

NEW_NAMESPACES = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x02000000
"""User, mount, process id, network, IPC, host name and control group."""
NO_SETUID, NO_DEVICES, NO_EXECUTION = 0x2, 0x4, 0x8
_READ_ONLY = 0x1
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_DETACH = 0x2
_AT_RECURSIVE = 0x8000
_AT_HERE = -100
_MOUNT_SETATTR = 442
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 1, 4, 38, 24
_JOIN_SESSION_KEYRING = 1
_CAPABILITY_VERSION_3 = 0x20080522
_MOST_CAPABILITIES = 64
_NUMBERS = {"x86_64": {"pivot_root": 155, "keyctl": 250}, "aarch64": {"pivot_root": 41, "keyctl": 219}}

_libc = ctypes.CDLL(None, use_errno=True)


def new_namespaces() -> None:
    """Move this process into new namespaces; its next child is the first process of the new process ids."""
    _check(_libc.unshare(NEW_NAMESPACES), "new namespaces")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a new file system of that kind."""
    _check(
        _libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()),
        f"mounting {kind} at {target}",
    )


def bind(source: str, target: str) -> None:
    """Show the file or folder `source` at `target` too, with what is mounted below it."""
    _check(
        _libc.mount(os.fsencode(source), os.fsencode(target), None, _BIND | _RECURSIVE, None),
        f"binding {source}",
    )


def make_private() -> None:
    """Keep all further mounts of this namespace from the machine's others."""
    _check(_libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None), "private mounts")


def restrict(target: str, *, recursive: bool) -> None:
    """Make a mount read-only, without devices and without set-user-id programs."""
    attributes = struct.pack("QQQQ", _READ_ONLY | NO_SETUID, 0, 0, 0)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    flags = _AT_RECURSIVE if recursive else 0
    _check(
        _libc.syscall(_MOUNT_SETATTR, _AT_HERE, os.fsencode(target), flags, buffer, len(attributes)),
        f"protecting {target}",
    )


def change_root(new: str, old: str) -> None:
    """Make `new` the root, and show the former root at `old`, a folder in `new`."""
    _check(_libc.syscall(_number("pivot_root"), os.fsencode(new), os.fsencode(old)), "changing the root")
    os.chdir("/")


def detach(target: str) -> None:
    """Unmount `target` with all below it."""
    _check(_libc.umount2(os.fsencode(target), _DETACH), f"unmounting {target}")


def die_with_parent(signal_number: int) -> None:
    """Get that signal when the parent ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "following the parent")


def set_dumpable(*, dumpable: bool) -> None:
    """Whether other processes of this user may look into this one."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0), "hiding the process")


def leave_keyring() -> None:
    """Begin an empty session keyring, in place of the one of the gateway."""
    # Some kernels have no keyrings: then there is nothing to leave.
    _libc.syscall(_number("keyctl"), _JOIN_SESSION_KEYRING, None)


def drop_capabilities() -> None:
    """Drop all capabilities, for good, also for programs that are started later."""
    for one in range(_MOST_CAPABILITIES):
        # EINVAL: a capability that this kernel does not have.
        _libc.prctl(_PR_CAPBSET_DROP, one, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing), "dropping rights")
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "dropping rights")


def is_known_machine() -> bool:
    """Whether the numbers of system calls are known for this kind of processor."""
    return platform.machine() in _NUMBERS


def _number(name: str) -> int:
    return _NUMBERS[platform.machine()][name]


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
