"""Start gateway processes without a new interpreter each: one program imports the gateway once and forks.

Before the first fork it runs a gateway itself, which answers on each channel. `fork_gateway` returns a
running process with the interface of `asyncio.subprocess.Process` that tests need, `fork_module` one that
runs a module of tests/support in the place of `python -m`. The process has a session, a working folder, an
environment and a log file as if it had been executed; only its imports are done. `GatewayProcess` uses it
unless a test asks for a new interpreter. Not for benches.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import cache
from pathlib import Path

import pytest

from gateway.app.bootstrap import build
from gateway.config import Secrets, environment, load
from tests.support import busy_machine, quick_page, quick_store
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from tests.support.web_client import WebChat

ROOT = Path(__file__).parents[2]
_IMPORTED = (
    *("gateway.cli.serve", "adapters.web.adapter", "adapters.telegram.adapter"),
    *("adapters.slack.adapter", "adapters.discord.adapter", "dateparser", "mcp", "mcp.types", "httpx2"),
)
"""What a gateway imports when it starts, also on demand."""
_REQUEST_BYTES = 65_536
_PATIENCE_S = 60.0


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
    """The connection to this test process's program, which ends when the connection is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {name: value for name, value in environment().items() if not name.startswith("PARLOUR")}
    with theirs:
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.support.gateway_forks", str(theirs.fileno())],
            # A library's own threads would not exist after a fork.
            env={**env, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        program.wait()

    atexit.register(end)
    return ours


def _serve(control: socket.socket) -> None:
    """Fork for each request until the connection is closed."""
    for name in _IMPORTED:
        importlib.import_module(name)
    quick_store.install(pytest.MonkeyPatch())
    busy_machine.install(pytest.MonkeyPatch())
    quick_page.install(pytest.MonkeyPatch())
    _live_once()
    gc.collect()
    gc.freeze()
    while True:
        request, (*files,), _, _ = socket.recv_fds(control, _REQUEST_BYTES, 2)
        _reap()
        if not request:
            return
        _import_before_the_fork(json.loads(request).get("module"))
        with socket.socket(fileno=files[0]) as connection:
            if os.fork() == 0:
                control.close()
                _keep(connection, files[1:], json.loads(request))
                return
        for file in files[1:]:
            os.close(file)


def _import_before_the_fork(module: str | None) -> None:
    """Import what the process is to run, for this one and all that follow."""
    if module is not None and module not in sys.modules:
        importlib.import_module(module)
        gc.collect()
        gc.freeze()


def _live_once() -> None:
    """Run a gateway that answers a message on each channel, and build the command line's parser: what a
    process computes at its first message, which takes longer than its start, is there in every fork."""
    program = importlib.import_module("gateway.cli.main")
    pytest.MonkeyPatch().setattr(program, "_parser", cache(program._parser))
    program._parser()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_answer_once(Path(folder)))
    # A thread would not exist after a fork.
    assert threading.active_count() == 1, threading.enumerate()


async def _answer_once(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        given = ['llm.model="scripted:echo"', 'voice.transcriber="scripted:hello"', "server.port=0"]
        platforms = (FakeTelegram(), FakeSlack(), FakeDiscord())
        for platform in platforms:
            await stack.enter_async_context(platform)
            (folder / platform.name).mkdir()
            given += platform.overrides(folder / platform.name)
        gateway = build(load(None, {}, [f'data.dir="{folder}"', *given]), Secrets(()))
        await gateway.start()
        chat = await stack.enter_async_context(WebChat())
        await chat.connect(gateway.url, (folder / "web-token").read_text(encoding="ascii").strip())
        await chat.send_text("c1", "hello")
        await chat.answer(await chat.accepted("c1"))
        for one in platforms:
            await _talk_once(one)
        await gateway.stop(_PATIENCE_S)


async def _talk_once(platform: FakePlatform) -> None:
    ann = platform.person("ann")
    chat = platform.private_chat(ann)
    await platform.say(chat, ann, "hello")
    await platform.until(lambda: bool(platform.bot_texts(chat)), timeout_s=_PATIENCE_S)


def _reap() -> None:
    """Collect the children that ended, so that their processor time counts as the tests'."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keep(connection: socket.socket, files: Sequence[int], request: dict[str, object]) -> None:
    """Fork the gateway, wait for it and report its exit code. Never returns. The file is its input."""
    pid = os.fork()
    for file in files:
        if pid == 0:
            os.dup2(file, 0)
        os.close(file)
    if pid == 0:
        _become_gateway(connection, **request)  # type: ignore[arg-type]  # what `fork_gateway` wrote
    _, status = os.waitpid(pid, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become_gateway(
    connection: socket.socket,
    *,
    arguments: list[str],
    folder: str,
    env: dict[str, str],
    log: str,
    errors: str = "",
    module: str = "",
) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()  # noqa: TID251 - this process becomes another one, with that one's environment
    os.environ.update(env)  # noqa: TID251 - as above
    time.tzset()
    for number, path in ((1, log), (2, errors or log)):
        output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(output, number)
        os.close(output)
    connection.sendall(f"{os.getpid()}\n".encode())
    connection.close()
    code: list[int] = [1]
    # To free what was imported before the fork takes longer than most of these processes run. What is
    # registered later runs before, as do the ends of all threads.
    atexit.register(lambda: _leave(code[0]))
    try:
        code[0] = _run(module, arguments)
    except SystemExit as ended:
        code[0] = int(ended.code or 0)
    sys.exit(code[0])


def _run(module: str, arguments: list[str]) -> int:
    """The exit code of a module of tests, or of `parlour`."""
    sys.argv = [module or "parlour", *arguments]
    if not module:
        return int(importlib.import_module("gateway.cli.main").main(arguments))
    runpy.run_path(str(sys.modules[module].__file__), run_name="__main__")
    return 0


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
