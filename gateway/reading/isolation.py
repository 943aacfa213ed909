"""Do one piece of work in a process that has no rights, and take its answer.

The process is a copy of the calling one, which has every library loaded and has parsed nothing. It can open
no file, socket or process, and ends with its answer.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import NoReturn

from gateway.reading.limits import ADDRESS_SPACE_BYTES, MAX_ANSWER_BYTES
from voice.workers.frames import BrokenFrame, WorkerFrame, read_frame
from voice.workers.sandbox import die_with_parent, lock_down
from voice.workers.syscall_filter import refuse_system_calls

_ANSWERS = 3
"""The only descriptor of the process besides the null device."""
_MOST_DESCRIPTORS = 256


class NoAnswer(Exception):
    """The process ended without a whole answer."""

    def __init__(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        super().__init__(signal.strsignal(-code) if code < 0 else f"exit code {code}")
        self.out_of_time = code == -signal.SIGXCPU


def in_isolation(work: Callable[[], WorkerFrame], *, seconds: int, extra_bytes: int = 0) -> WorkerFrame:
    """The answer of `work`, which may use `seconds` of processor time. Call it from the only thread.

    `extra_bytes` of memory are allowed in addition to the common limit. Raises NoAnswer.
    """
    incoming, outgoing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _be_isolated(work, outgoing, parent, seconds=seconds, address_space=ADDRESS_SPACE_BYTES + extra_bytes)
    os.close(outgoing)
    with os.fdopen(incoming, "rb") as stream:
        try:
            answer = read_frame(stream, max_body_bytes=MAX_ANSWER_BYTES)
        except BrokenFrame:
            answer = None
            os.kill(child, signal.SIGKILL)  # it may write without an end
    if answer is not None:
        os.kill(child, signal.SIGKILL)  # it has nothing more to do, whatever it does
    _, status = os.waitpid(child, 0)
    if answer is None:
        raise NoAnswer(status)
    return answer


def _be_isolated(
    work: Callable[[], WorkerFrame], outgoing: int, parent: int, *, seconds: int, address_space: int
) -> NoReturn:
    """Drop every right, do the work, write its answer and end the process."""
    code = 1
    try:
        die_with_parent(parent)
        os.dup2(outgoing, _ANSWERS)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        # The gateway's requests and its answers to them are among these.
        os.closerange(_ANSWERS + 1, _MOST_DESCRIPTORS)
        lock_down(address_space_bytes=address_space)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        refuse_system_calls()
        answer = memoryview(work().encode())
        while answer:
            answer = answer[os.write(_ANSWERS, answer) :]
        code = 0
    finally:
        # Also after an exception: the copy must never return into its parent's code.
        os._exit(code)
