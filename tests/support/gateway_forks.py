"""Start gateway processes without a new interpreter each: one program imports the gateway once and forks
(`fork_program.py`). All workers of a test run share it.

`fork_gateway` returns a running process with the interface of `asyncio.subprocess.Process` that tests need,
`fork_module` one that runs a module of tests/support in the place of `python -m`. The process has a session,
a working folder, an environment and a log file as if it had been executed; only its imports are done.
`GatewayProcess` uses it unless a test asks for a new interpreter. Not for benches.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from gateway.config import environment

ROOT = Path(__file__).parents[2]
READY = b"ready"
"""What the program says to each connection first."""
_RUN = secrets.token_hex()
"""The same in all workers, which are forked after this module was imported."""
_STARTING_S = 300.0
"""Until the program can fork: on a machine that others use, its imports take a minute."""


class ForkedProcess:
    """A process that the program forked. `returncode` is None while it runs."""

    def __init__(self, connection: _Connection, pid: int) -> None:
        self._connection = connection
        self.pid = pid

    @property
    def returncode(self) -> int | None:
        """The exit code; negative for a signal."""
        return self._connection.returncode

    def kill(self) -> None:
        """SIGKILL; nothing if the process has ended."""
        self._send(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM; nothing if the process has ended."""
        self._send(signal.SIGTERM)

    async def wait(self) -> int:
        """The exit code, once the process has ended. Raises RuntimeError when the program died before."""
        await asyncio.shield(self._connection.closed)
        if self.returncode is None:
            raise RuntimeError("the program that forks gateways died")
        return self.returncode

    def _send(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)


async def fork_gateway(
    arguments: Sequence[str], *, folder: Path, env: Mapping[str, str], log: Path, module: str = ""
) -> ForkedProcess:
    """Run `parlour`, or the `module`, with `arguments` in `folder`; its output is appended to `log`."""
    request = {"arguments": list(arguments), "folder": str(folder), "env": dict(env), "log": str(log)}
    if module:
        request["module"] = module
    return await _forked(request)


async def fork_module(module: str, *arguments: str, log: Path) -> ForkedProcess:
    """Run `python -m` with `module` and `arguments` in the checkout; its output is appended to `log`. The
    module is a program: to import it does nothing."""
    env = {name: value for name, value in environment().items() if not name.startswith("PARLOUR")}
    request = {"arguments": list(arguments), "folder": str(ROOT), "env": env, "log": str(log)}
    return await _forked(request | {"module": module})


async def _forked(request: Mapping[str, object]) -> ForkedProcess:
    ours = _requested(request)
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: _Connection(loop), sock=ours)
    return ForkedProcess(connection, await connection.pid)


def run_forked(
    arguments: Sequence[str], *, folder: Path, env: Mapping[str, str], typed: str, limit_s: float
) -> subprocess.CompletedProcess[str]:
    """Run `parlour` with `arguments` in `folder` to its end, as `subprocess.run` does. Raises TimeoutError
    after `limit_s` seconds."""
    with tempfile.TemporaryDirectory() as written:
        log, errors = Path(written) / "stdout", Path(written) / "stderr"
        request = {"arguments": list(arguments), "folder": str(folder), "env": dict(env), "log": str(log)}
        readable, writable = os.pipe()
        try:
            connection = _requested(request | {"errors": str(errors)}, readable)
        finally:
            os.close(readable)
        with connection, os.fdopen(writable, "w", encoding="utf-8") as keyboard:
            connection.settimeout(limit_s)
            with suppress(BrokenPipeError):
                keyboard.write(typed)
                keyboard.close()
            received = b"".join(iter(lambda: connection.recv(64), b""))
        texts = [file.read_text("utf-8") for file in (log, errors)]
        return subprocess.CompletedProcess(list(arguments), int(received.split()[1]), *texts)


class ForkedOnTerminal:
    """A process on a terminal, with what tests need of the interface of `subprocess.Popen`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("r", encoding="ascii")
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None

    def wait(self, limit_s: float) -> int:
        """The exit code, once the process has ended. Raises TimeoutError after `limit_s` seconds."""
        if self.returncode is None:
            self._connection.settimeout(limit_s)
            self.returncode = int(self._lines.readline())
        return self.returncode

    def close(self) -> None:
        """End the process, if it runs. Another one may have the number of one that was waited for."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._lines.close()
        self._connection.close()


def fork_on_terminal(
    arguments: Sequence[str], *, folder: Path, env: Mapping[str, str], terminal: int
) -> ForkedOnTerminal:
    """Run `parlour` with `arguments` in `folder` on the open `terminal`, which does not control it."""
    request = {"arguments": list(arguments), "folder": str(folder), "env": dict(env)}
    return ForkedOnTerminal(_requested(request | {"log": os.ttyname(terminal)}, terminal))


def _requested(request: Mapping[str, object], *files: int) -> socket.socket:
    """The connection to a process for `request`, which gets the open `files`."""
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_program(), [json.dumps(request).encode()], [theirs.fileno(), *files])
    return ours


class _Connection(asyncio.Protocol):
    """Receives two lines: the pid from the process, and the exit code from the process that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pid: asyncio.Future[int] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.returncode: int | None = None
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        pid, *code = self._received.split(b"\n")[:-1] or [b""]
        if pid and not self.pid.done():
            self.pid.set_result(int(pid))
        if code:
            self.returncode = int(code[0])

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.pid.done():
            self.pid.set_exception(exc or RuntimeError("the program that forks gateways died"))
        self.closed.set_result(None)


@cache
def _program() -> socket.socket:
    """The connection to the program, which ends when the last connection to it is closed."""
    name = f"\0parlour-tests-{_RUN}"
    while True:
        started = _start_unless_started(name)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # The one that runs may end just now, with the last connection of another worker.
        with suppress(ConnectionError):
            connection.connect(name)
            connection.settimeout(_STARTING_S)
            if connection.recv(len(READY)) == READY:
                connection.settimeout(None)
                atexit.register(connection.close)
                return connection
        connection.close()
        if started is not None and started.wait():
            raise RuntimeError("the program that forks gateways died")


def _start_unless_started(name: str) -> subprocess.Popen[bytes] | None:
    """Start the program that listens at `name`; None where this or another worker has."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        try:
            listener.bind(name)
        except OSError:
            return None
        listener.listen()
        env = {key: value for key, value in environment().items() if not key.startswith("PARLOUR")}
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_program", str(listener.fileno())],
            # A library's own threads would not exist after a fork.
            env={**env, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    # Its processor time counts as the tests'. The connection is closed before: that is registered later.
    atexit.register(program.wait)
    return program
