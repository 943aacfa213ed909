"""The first process of a sandbox: it builds the file system, starts the command, measures it and ends it.

The command can neither signal it nor look into it. When it ends, in whatever way, the kernel kills every
process of the sandbox.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from gateway.sandbox import kernel
from gateway.sandbox.command import start
from gateway.sandbox.folder_copy import CopyLimits, TooMuch
from gateway.sandbox.kept_files import KeptFiles
from gateway.sandbox.protocol import HOME, SandboxRequest, report_line
from gateway.sandbox.root_folder import build_root
from gateway.sandbox.usage import exact_memory, is_machine_full, measured
from pipeline.tools.command_end import CommandEnd, Ending

USER_ID = 1_000
"""The command's user, inside."""
_OUTPUT, _REPORT = 1, 2
_LOOK_EVERY_S = 0.05
_READ_BYTES = 1 << 16
_NOT_FOUND = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)


def be_first_process(request: SandboxRequest, folder: int, parent_ended: Callable[[], bool]) -> NoReturn:
    """Run the command with the files in the open folder `folder`, write its output and a report, and end."""
    code = 1
    try:
        kernel.set_dumpable(dumpable=False)
        kernel.die_with_parent(9)
        if parent_ended():
            os._exit(1)
        os.write(_REPORT, report_line(_run(request, folder)))
        code = 0
    except BaseException as error:  # noqa: BLE001 - this copy must never return into its parent's code
        os.write(_REPORT, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _run(request: SandboxRequest, folder: int) -> CommandEnd:
    limits = request.limits
    try:
        build_root(uid=USER_ID, disk_bytes=limits.disk_bytes, files=limits.files, hidden=request.hidden)
        kept = KeptFiles(folder, CopyLimits(bytes=limits.disk_bytes, files=limits.files))
        kept.bring_into(HOME)
    except (OSError, TooMuch) as error:
        return CommandEnd(ending="not_started", unkept=_reason(error))
    report = _Watch(request).run()
    with suppress(OSError):
        Path(HOME).chmod(0o700)
    try:
        files = kept.keep(HOME)
    except (OSError, TooMuch) as error:
        return replace(report, unkept=_reason(error))
    return replace(report, files=files)


def _reason(error: OSError | TooMuch) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _now() -> float:
    return time.monotonic()  # noqa: TID251 - this process has no event loop, and nothing to inject a clock


class _Watch:
    """One run of the command."""

    def __init__(self, request: SandboxRequest) -> None:
        self._limits = request.limits
        self._began = _now()
        self._next_look = self._began
        self._written = 0
        self._has_output = True
        self._status: int | None = None
        self._output, output = os.pipe()
        self._failure, failure = os.pipe()
        self._main = start(request.argv, request.limits, output, failure)
        os.close(output)
        os.close(failure)

    def run(self) -> CommandEnd:
        """Wait until the command has ended or is ended, and kill all that is left."""
        ending: Ending | None = None
        while ending is None and self._status is None:
            self._wait()
            self._reap()
            ending = self._exceeded()
        left = measured().processes if self._status is not None else 0
        self._kill_all()
        seconds = _now() - self._began
        if ending is None:
            # The output of a command that ended may still be in the pipe.
            ending = "output" if not self._drain() else None
        failed = os.read(self._failure, 16)
        if failed:
            number = int(failed)
            ending = "not_found" if number in _NOT_FOUND else "not_started"
            return CommandEnd(ending=ending, status=number, unkept=os.strerror(number))
        return self._report(ending, seconds, left)

    def _report(self, ending: Ending | None, seconds: float, left: int) -> CommandEnd:
        status = os.waitstatus_to_exitcode(self._status or 0)
        if ending is None:
            # The kernel ends a process at its limit of processor time by a signal.
            ending = "exit" if status >= 0 else "processor" if status == -signal.SIGXCPU else "signal"
        space = os.statvfs(HOME)
        return CommandEnd(
            ending=ending,
            status=abs(status),
            seconds=round(seconds, 2),
            left_running=left,
            disk_full=space.f_bavail == 0 or space.f_favail == 0,
        )

    def _wait(self) -> None:
        """Wait for output, or for the time of the next look."""
        readable = [self._output] if self._has_output else []
        if select.select(readable, [], [], _LOOK_EVERY_S)[0]:
            # Once all writers have closed it, only the end is left to wait for.
            self._has_output = self._forward()

    def _forward(self) -> bool:
        """Pass some output on; False at its end."""
        data = os.read(self._output, _READ_BYTES)
        room = self._limits.output_bytes - self._written
        self._written += len(data)
        rest = memoryview(data)[: max(0, room)]
        while rest:
            rest = rest[os.write(_OUTPUT, rest) :]
        return bool(data)

    def _drain(self) -> bool:
        """Pass on what is left; False if it is too much."""
        while self._written <= self._limits.output_bytes and self._forward():
            pass
        return self._written <= self._limits.output_bytes

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._main:
                    self._status = ended[1]

    def _exceeded(self) -> Ending | None:
        """The limit that is exceeded; None if there is none."""
        if self._status is not None:
            return None
        limits = self._limits
        if self._written > limits.output_bytes:
            return "output"
        if _now() - self._began > limits.seconds:
            return "time"
        # A command that writes line by line must not be measured after each of them.
        if _now() < self._next_look:
            return None
        self._next_look = _now() + _LOOK_EVERY_S
        usage = measured()
        if usage.processor_seconds > limits.processor_seconds:
            return "processor"
        if usage.memory_bytes > limits.memory_bytes and exact_memory() > limits.memory_bytes:
            return "memory"
        return "memory" if is_machine_full() else None

    def _kill_all(self) -> None:
        """Kill every other process of the sandbox, until none is left: each becomes a child of this one."""
        while True:
            with suppress(ProcessLookupError):
                os.kill(-1, 9)
            try:
                ended, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            if ended == self._main:
                self._status = status
