"""Build the file system that a command sees: system folders to read, one folder and `/tmp` to write.

Call it in new namespaces, as their only process. Nothing of the machine's file system can be reached
afterwards, except what is shown here.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gateway.sandbox import kernel
from gateway.sandbox.protocol import HOME

_DISK_OPTIONS = "size={size},nr_inodes={files},mode=0755"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = (
    "/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/etc/mime.types",
)  # fmt: skip
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
          "stderr": "/proc/self/fd/2", "shm": "/tmp"}  # noqa: S108  # fmt: skip
_TEXTS = {
    "passwd": "user:x:{uid}:{uid}::/home:/bin/sh\n",
    "group": "user:x:{uid}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_BASE = "/tmp"  # noqa: S108 - a folder to mount over, which every machine has; nothing is written into it
_WITHOUT_SETUID = kernel.NO_SETUID | kernel.NO_DEVICES


def build_root(*, uid: int, disk_bytes: int, files: int, hidden: Iterable[str]) -> None:
    """Change to the new root. `disk_bytes` and `files` limit all that the command writes; `hidden` are paths
    of the machine that it must not see. Raises OSError."""
    kernel.make_private()
    kernel.mount("tmpfs", _BASE, "tmpfs", _WITHOUT_SETUID, "size=1m,mode=0755")
    for name in ("root", "machine"):
        Path(_BASE, name).mkdir()
    kernel.change_root(_BASE, f"{_BASE}/machine")
    # A separate mount, so that it can be made read-only.
    kernel.mount("tmpfs", "/root", "tmpfs", _WITHOUT_SETUID, "size=1m,mode=0755")
    shown = [path for path in _SYSTEM if _show("/machine", path)]
    _write_settings(uid)
    shown += [path for path in _SETTINGS if _show("/machine", path)]
    _add_devices()
    _add_disk(disk_bytes, files)
    _mkdir("/proc")
    kernel.mount("proc", "/root/proc", "proc", _WITHOUT_SETUID | kernel.NO_EXECUTION)
    for path in shown:
        kernel.restrict(f"/root{path}", recursive=True)
    for path in hidden:
        _hide(path)
    kernel.change_root("/root", "/root/proc")
    _leave_old_root()


def _leave_old_root() -> None:
    """Unmount the former root, which lies over `/proc`, and protect the new one."""
    kernel.detach("/proc")
    kernel.restrict("/", recursive=False)


def _show(machine: str, path: str) -> bool:
    """Show a path of the machine in the new root; returns whether it is a mount."""
    source, target = Path(f"{machine}{path}"), Path(f"/root{path}")
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return False
    if not source.exists():
        return False
    if source.is_dir():
        target.mkdir()
    else:
        target.touch()
    kernel.bind(str(source), str(target))
    return True


def _write_settings(uid: int) -> None:
    _mkdir("/etc")
    for name, text in _TEXTS.items():
        Path("/root/etc", name).write_bytes(text.format(uid=uid).encode())


def _add_devices() -> None:
    _mkdir("/dev")
    for name in _DEVICES:
        Path("/root/dev", name).touch()
        kernel.bind(f"/machine/dev/{name}", f"/root/dev/{name}")
    for name, target in _LINKS.items():
        Path("/root/dev", name).symlink_to(target)


def _add_disk(disk_bytes: int, files: int) -> None:
    """The one file system for all that is written, shown as the command's folder and as `/tmp`."""
    _mkdir("/disk")
    options = _DISK_OPTIONS.format(size=disk_bytes, files=files + 3)
    kernel.mount("tmpfs", "/root/disk", "tmpfs", _WITHOUT_SETUID, options)
    for name in (HOME, "/tmp"):  # noqa: S108 - the sandbox's own
        Path(f"/root/disk{name}").mkdir(mode=0o700)
        _mkdir(name)
        kernel.bind(f"/root/disk{name}", f"/root{name}")
    kernel.detach("/root/disk")
    Path("/root/disk").rmdir()


def _hide(path: str) -> None:
    """Cover a path that the command must not see, where a system folder shows it."""
    target = Path(f"/root{path}")
    # What this user may not reach, the command may not reach either.
    with suppress(PermissionError):
        if target.is_dir():
            kernel.mount("tmpfs", str(target), "tmpfs", _WITHOUT_SETUID, "size=4k,mode=0555")
        elif target.exists():
            kernel.bind("/root/dev/null", str(target))


def _mkdir(path: str) -> None:
    Path(f"/root{path}").mkdir()
