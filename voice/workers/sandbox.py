"""Prepare a child program for untrusted bytes: pipes, an end with its parent, and kernel limits.

Not here: the parent's side (`voice.workers.child`) and the programs themselves. The kernel enforces the
limits permanently: a compromised decoder can open no file and no socket, and its memory is limited.
"""

from __future__ import annotations

import ctypes
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from voice.workers.frames import WorkerFrame, read_frame

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522

ADDRESS_SPACE_BYTES = 512 * 1024**2
"""numpy, av, onnxruntime and the model use 260 MB of it, five minutes of audio in a 20 MB file 60 more."""
JOB_CPU_SECONDS = 20
"""Five minutes of loud noise, the most that a job can contain, take about two."""

Send = Callable[[WorkerFrame], None]


def take_over_pipes(max_body_bytes: int) -> tuple[queue.SimpleQueue[WorkerFrame], Send]:
    """The queue of incoming requests, and the function that sends an answer.

    Standard output is redirected, so that a library that prints cannot corrupt the frames. A thread
    reads standard input, so that its end stops the process even during a job.
    """
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    requests: queue.SimpleQueue[WorkerFrame] = queue.SimpleQueue()
    stream = os.fdopen(os.dup(0), "rb")
    reader = threading.Thread(
        target=_read_requests, args=(stream, requests, max_body_bytes), name="requests", daemon=True
    )
    reader.start()

    def send(frame: WorkerFrame) -> None:
        data = memoryview(frame.encode())
        while data:
            data = data[answers.write(data) :]

    return requests, send


def die_with_parent(parent_pid: int) -> None:
    """Ask Linux to kill this process with its parent. On other systems, the end of stdin stops it."""
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:
            os._exit(0)


def lock_down(*, address_space_bytes: int = ADDRESS_SPACE_BYTES) -> None:
    """Drop every right that decoding does not need, permanently. Call it after everything is loaded and warm.

    Afterwards no descriptor can be opened, so no file, socket or process can be reached beyond the
    pipes that are open; no file can grow; memory ends at `address_space_bytes`; no core is written.
    """
    _limit(resource.RLIMIT_AS, address_space_bytes)
    _limit(resource.RLIMIT_NOFILE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    if sys.platform == "linux":
        _limit(resource.RLIMIT_NPROC, 0)  # applies to every user except root; nothing is started here anyway
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _drop_capabilities()


def allow_cpu(seconds: int = JOB_CPU_SECONDS) -> None:
    """Allow `seconds` more of processor time before the kernel ends this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(usage.ru_utime + usage.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (_at_most(wanted, hard), hard))


def _limit(kind: int, value: int) -> None:
    """Set both the soft and the hard limit, so that it cannot be raised again."""
    _, hard = resource.getrlimit(kind)
    lowered = _at_most(value, hard)
    resource.setrlimit(kind, (lowered, lowered))


def _at_most(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _drop_capabilities() -> None:
    """Drop all capabilities, so that the limits also apply to root; other users lose nothing."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, 64 bits each
    ctypes.CDLL(None, use_errno=True).capset(header, nothing)


def _read_requests(stream: BinaryIO, requests: queue.SimpleQueue[WorkerFrame], max_body_bytes: int) -> None:
    try:
        while (frame := read_frame(stream, max_body_bytes=max_body_bytes)) is not None:
            requests.put(frame)
    finally:
        os._exit(0)  # the parent has ended or sends invalid frames: no caller waits for the running job
