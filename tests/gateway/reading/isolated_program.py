"""A program that tries in an isolated copy of itself what a hostile file might make a library do."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gateway.reading.isolation import NoAnswer, in_isolation
from voice.workers.frames import WorkerFrame


def attempts(folder: Path, parent: int) -> dict[str, Callable[[], object]]:
    """Each must fail with an error."""
    libc = ctypes.CDLL(None, use_errno=True)

    def traced() -> None:
        if libc.ptrace(16, parent, 0, 0) == -1:
            raise OSError(ctypes.get_errno(), "ptrace")

    return {
        "read a file": (folder / "file").read_text,
        "write a file": lambda: (folder / "new").write_text("x"),
        "delete a file": (folder / "file").unlink,
        "rename a file": lambda: (folder / "file").rename(folder / "other"),
        "change a file": lambda: (folder / "file").chmod(0o777),
        "cut a file": lambda: os.truncate(folder / "file", 0),
        "make a folder": (folder / "folder").mkdir,
        "list a folder": lambda: list(folder.iterdir()),
        "change folder": lambda: os.chdir("/"),
        "open a socket": socket.socket,
        "open a Unix socket": lambda: socket.socket(socket.AF_UNIX),
        "start a process": os.fork,
        "start a program": lambda: os.execv("/bin/sh", ["sh"]),
        "start a thread": lambda: threading.Thread(target=print).start(),
        "signal the parent": lambda: os.kill(parent, signal.SIGTERM),
        "change the parent's limits": lambda: _limit_of(parent),
        "attach to the parent": traced,
        "make a pipe": os.pipe,
        "raise its own limit": _raised_limit,
        "change the user": lambda: os.setuid(65_534),
    }


def _limit_of(parent: int) -> None:
    resource.prlimit(parent, resource.RLIMIT_NOFILE, (0, 0))


def _raised_limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def try_all(folder: Path, parent: int) -> WorkerFrame:
    succeeded = []
    for name, attempt in attempts(folder, parent).items():
        try:
            attempt()
        except (OSError, RuntimeError, ValueError):
            continue
        succeeded.append(name)
    return WorkerFrame(header={"succeeded": succeeded})


def loop() -> WorkerFrame:
    while True:
        pass


def eat() -> WorkerFrame:
    held = [bytearray(64 * 1024**2) for _ in range(100)]
    return WorkerFrame(header={"bytes": len(held)})


def eat_and_say_so() -> WorkerFrame:
    try:
        return eat()
    except MemoryError:
        return WorkerFrame(header={"memory": "limited"})


def crash() -> WorkerFrame:
    ctypes.string_at(0)
    return WorkerFrame(header={})


def flood() -> WorkerFrame:
    while True:
        os.write(3, b"\xff" * 65_536)


def outcome(work: Callable[[], WorkerFrame], seconds: int) -> str:
    try:
        return str(in_isolation(work, seconds=seconds).header)
    except NoAnswer as error:
        return f"{error}, out of time: {error.out_of_time}"


def main() -> None:
    if sys.argv[1:] == ["--loop"]:
        in_isolation(loop, seconds=600)
    folder, parent = Path(sys.argv[1]), os.getpid()
    # Only the loop must run out of time: on a busy machine a second is not enough to fill the memory.
    works = ((partial(try_all, folder, parent), 60), (loop, 1), (eat_and_say_so, 60), (crash, 60))
    for work, seconds in (*works, (flood, 60)):
        sys.stdout.write(outcome(work, seconds) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
