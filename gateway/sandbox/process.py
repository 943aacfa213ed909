"""Start a sandbox process, pass its output on, and end it with all that it has started."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import gateway
from gateway.sandbox.folders import owned_folder
from gateway.sandbox.protocol import SandboxLimits, SandboxRequest, report_from
from pipeline.tools.command_end import CommandEnd

_MODULE = "gateway.sandbox.sandbox_main"
_READ_BYTES = 1 << 16
_REPORT_BYTES = 1 << 20
_END_S = 5.0
_TRY_S = 20.0
_NO_PIPES = "the sandbox has no pipes"
_TRY_LIMITS = SandboxLimits(
    seconds=10.0, processor_seconds=5, memory_bytes=128 * 1024**2, processes=4, open_files=64,
    file_bytes=1_000_000, disk_bytes=4_000_000, files=100, output_bytes=10_000,
)  # fmt: skip
_REMEDY = (
    "commands need Linux 5.14 or newer on x86-64 or AArch64 that lets this user make namespaces: see "
    "user.max_user_namespaces, kernel.unprivileged_userns_clone and "
    "kernel.apparmor_restrict_unprivileged_userns in `sysctl -a`, and docs/guides/shell.md for containers "
    "and services"
)


class SandboxBroken(Exception):
    """The sandbox ended without a report. The message is what it wrote instead."""


async def run_in_sandbox(
    request: SandboxRequest, on_output: Callable[[bytes], Awaitable[None]]
) -> tuple[bytes, CommandEnd]:
    """Run one command; returns its output and its end. `on_output` gets the output as it comes. Cancelling
    kills everything, and waits until it has ended. Raises OSError and SandboxBroken."""
    process = await asyncio.create_subprocess_exec(
        *_command(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
        cwd="/",
        start_new_session=True,
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    try:
        if stdin is None or stdout is None or stderr is None:
            raise SandboxBroken(_NO_PIPES)
        stdin.write(request.encode())
        output, report = await asyncio.gather(
            _read(stdout, on_output), _read(stderr, _ignore, most=_REPORT_BYTES)
        )
        await process.wait()
    finally:
        await _end(process)
    return output, _end_from(report)


def sandbox_problem() -> str:
    """Why no command can be run on this machine, and what to do; empty if one can. Runs one, which takes
    a fraction of a second."""
    try:
        end = _end_from(_tried())
    except (OSError, SandboxBroken, subprocess.TimeoutExpired) as error:
        return f"{error}; {_REMEDY}"
    return "" if end.success else f"{end.problem or end.words}; {_REMEDY}"


def _tried() -> bytes:
    with owned_folder() as folder:
        request = SandboxRequest(
            argv=("sh", "-c", "echo tried > file"), folder=str(folder), hidden=(), limits=_TRY_LIMITS
        )
        process = subprocess.Popen(  # noqa: S603 - this program's own sandbox
            _command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_environment(),
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        with process:
            if process.stdin is None or process.stderr is None:
                raise SandboxBroken(_NO_PIPES)
            with suppress(BrokenPipeError):  # it has ended: its words say why
                process.stdin.write(request.encode())
            try:
                # The input stays open meanwhile: its end would end the command.
                process.wait(_TRY_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            return process.stderr.read(_REPORT_BYTES) or b""


def _command() -> tuple[str, ...]:
    # -P keeps the working directory off the import path; -S leaves out what only other programs need.
    return (sys.executable, "-P", "-S", "-m", _MODULE, "--parent-pid", str(os.getpid()))


def _environment() -> dict[str, str]:
    """The environment of the sandbox process; its command gets another one. Neither has a secret."""
    return {"PYTHONPATH": str(Path(gateway.__file__).absolute().parent.parent), "PYTHONUTF8": "1"}


async def _read(
    stream: asyncio.StreamReader, on_data: Callable[[bytes], Awaitable[None]], most: int | None = None
) -> bytes:
    """All that the stream brings; if `most` is given, the first bytes of it."""
    whole = bytearray()
    while data := await stream.read(_READ_BYTES):
        if most is None or len(whole) < most:
            whole += data
        await on_data(data)
    return bytes(whole)


async def _ignore(_data: bytes) -> None:
    """Ignore data that is returned as a whole."""


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and all that it has started, and wait for it, also if this is cancelled meanwhile."""
    cancelled = False
    if process.stdin is not None:
        process.stdin.close()  # the end of its input makes it kill everything and end
    while process.returncode is None:
        try:
            async with asyncio.timeout(_END_S):
                # Reads what is left too: a full pipe would keep it from ending.
                await process.communicate()
        except TimeoutError:
            process.kill()  # the kernel kills the others with it
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def _end_from(report: bytes) -> CommandEnd:
    """The report in what the process wrote. Raises SandboxBroken."""
    try:
        return report_from(report.splitlines()[-1])
    except (IndexError, ValueError, TypeError):
        words = report.decode("utf-8", "replace").strip().splitlines()
        raise SandboxBroken(words[-1] if words else "the sandbox ended without a word") from None
