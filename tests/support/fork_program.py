"""The program that forks gateway processes: it imports the gateway once, and each fork has it.

Before the first fork it runs gateways itself, which answer on each channel, as a companion and with a tool:
what a process computes at its first message, which takes longer than its start, is there in every fork. It
has one thread, and forks for every worker of a test run. `gateway_forks.py` starts it.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import logging
import os
import runpy
import selectors
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from gateway.app.bootstrap import build
from gateway.config import Secrets, load
from tests.support import busy_machine, quick_page, quick_store
from tests.support.gateway_forks import READY
from tests.support.openai_server import FakeOpenAiServer
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.platform import FakePlatform
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from tests.support.tool_talk import think, tool_settings, wish
from tests.support.web_client import WebChat

_IMPORTED = (
    *("gateway.cli.serve", "adapters.web.adapter", "adapters.telegram.adapter"),
    *("adapters.slack.adapter", "adapters.discord.adapter", "dateparser", "cronsim", "httpx2"),
    *("gateway.agents.workflow_facts", "gateway.app.api", "gateway.storage.postgres.store"),
    *("gateway.cluster.redis_transport", "gateway.cluster.redis_cache", "gateway.cluster.redis_counts"),
    "gateway.cluster.postgres_transport",
)
"""What a gateway imports when it starts, also on demand."""
_LARGE = {"tools.mcp_file=": ("mcp", "mcp.client.streamable_http")}
"""What a gateway with the setting may import besides: it takes as long as ten starts, and is imported for the
first one."""
_CREDENTIALS = struct.Struct("3i")
_REQUEST_BYTES = 65_536
_PATIENCE_S = 60.0


class _Program:
    """Forks for each request of a worker that has connected to `listener`, until none is connected."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._workers: set[socket.socket] = set()
        self._children: dict[int, tuple[int, socket.socket]] = {}
        """By the descriptor that becomes readable when the child ends: its pid, and who waits for it."""

    def serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._greet()
                elif isinstance(key.fileobj, socket.socket):
                    self._answer(key.fileobj)
                else:
                    self._reap(key.fd)
            if not self._workers:
                return

    def _greet(self) -> None:
        worker, _ = self._listener.accept()
        if _user_of(worker) != os.getuid():
            worker.close()
            return
        self._workers.add(worker)
        self._selector.register(worker, selectors.EVENT_READ)
        with suppress(ConnectionError):  # it has gone again
            worker.sendall(READY)

    def _answer(self, worker: socket.socket) -> None:
        request, files, _, _ = socket.recv_fds(worker, _REQUEST_BYTES, 2)
        if not request:
            self._selector.unregister(worker)
            self._workers.discard(worker)
            worker.close()
            return
        asked = json.loads(request)
        _import_before_the_fork(asked.get("module"), asked["arguments"])
        connection = socket.socket(fileno=files[0])
        pid = os.fork()
        if pid == 0:
            self._forget()
            _become_gateway(connection, files[1:], **asked)
        for file in files[1:]:
            os.close(file)
        ended = os.pidfd_open(pid)
        self._children[ended] = pid, connection
        self._selector.register(ended, selectors.EVENT_READ)

    def _reap(self, ended: int) -> None:
        self._selector.unregister(ended)
        os.close(ended)
        pid, connection = self._children.pop(ended)
        _, status = os.waitpid(pid, 0)
        with connection, suppress(ConnectionError):  # no one may wait for it any more
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())

    def _forget(self) -> None:
        """Close in a fork what is the program's: a test would wait for the end of every process that has the
        connection to another one."""
        self._selector.close()
        self._listener.close()
        for worker in self._workers:
            worker.close()
        for ended, (_, connection) in self._children.items():
            os.close(ended)
            connection.close()


def _user_of(worker: socket.socket) -> int:
    """The user id of the process at the other end."""
    _, user, _ = _CREDENTIALS.unpack(
        worker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return int(user)


def _import_before_the_fork(module: str | None, arguments: Sequence[str]) -> None:
    """Import what the process is to run, for this one and all that follow."""
    names = [] if module is None else [module]
    for setting, large in _LARGE.items():
        if any(argument.startswith(setting) for argument in arguments):
            names += large
    missing = [name for name in names if name not in sys.modules]
    for name in missing:
        importlib.import_module(name)
    if missing:
        gc.collect()
        gc.freeze()


def _become_gateway(
    connection: socket.socket,
    files: Sequence[int],
    *,
    arguments: list[str],
    folder: str,
    env: dict[str, str],
    log: str,
    errors: str = "",
    module: str = "",
) -> None:
    """Never returns. The first of `files` is the input."""
    for file in files:
        os.dup2(file, 0)
        os.close(file)
    os.setsid()
    os.chdir(folder)
    os.environ.clear()  # noqa: TID251 - this process becomes another one, with that one's environment
    os.environ.update(env)  # noqa: TID251 - as above
    time.tzset()
    for number, path in ((1, log), (2, errors or log)):
        output = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOCTTY, 0o644)
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


def _live_once() -> None:
    """Run gateways that answer, and build the command line's parser."""
    program = importlib.import_module("gateway.cli.main")
    pytest.MonkeyPatch().setattr(program, "_parser", cache(program._parser))
    program._parser()
    logging.disable(logging.WARNING)
    for live in (_on_each_channel, _with_a_tool, _as_companion):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(live(Path(folder)))
    logging.disable(logging.NOTSET)
    # A thread would not exist after a fork.
    assert threading.active_count() == 1, threading.enumerate()


async def _on_each_channel(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        given: list[str] = []
        platforms = (FakeTelegram(), FakeSlack(), FakeDiscord())
        for platform in platforms:
            await stack.enter_async_context(platform)
            (folder / platform.name).mkdir()
            given += platform.overrides(folder / platform.name)
        chat = await stack.enter_async_context(_gateway(folder, 'llm.model="scripted:echo"', *given))
        await _answered(chat, "hello")
        for one in platforms:
            await _talk_once(one)


async def _with_a_tool(folder: Path) -> None:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(FakeOpenAiServer(brain=think))
        settings = tool_settings(model.api_base, folder)
        await _answered(await stack.enter_async_context(_gateway(folder, *settings)), wish("remind", "hello"))


async def _as_companion(folder: Path) -> None:
    async with _gateway(folder, 'agent.graph="companion"', 'llm.model="scripted:fail:unavailable"') as chat:
        await _answered(chat, "I love hiking in the mountains, and I can't calm down")
        await _answered(chat, "let's do a box breathing exercise")


@asynccontextmanager
async def _gateway(folder: Path, *given: str) -> AsyncIterator[WebChat]:
    settings = (f'data.dir="{folder}"', "server.port=0", 'voice.transcriber="scripted:hello"', *given)
    gateway = build(load(None, {}, settings), Secrets(()))
    await gateway.start()
    async with WebChat() as chat:
        await chat.connect(gateway.url, (folder / "web-token").read_text(encoding="ascii").strip())
        yield chat
    await gateway.stop(_PATIENCE_S)


async def _answered(chat: WebChat, text: str) -> None:
    client_id = f"c{len(text)}"
    await chat.send_text(client_id, text)
    await chat.answer(await chat.accepted(client_id))


async def _talk_once(platform: FakePlatform) -> None:
    ann = platform.person("ann")
    chat = platform.private_chat(ann)
    await platform.say(chat, ann, "hello")
    await platform.until(lambda: bool(platform.bot_texts(chat)), timeout_s=_PATIENCE_S)


def main(descriptor: int) -> None:
    """Serve the listening socket `descriptor`."""
    for name in _IMPORTED:
        importlib.import_module(name)
    for module in (quick_store, busy_machine, quick_page):
        module.install(pytest.MonkeyPatch())
    _live_once()
    gc.collect()
    gc.freeze()
    _Program(socket.socket(fileno=descriptor)).serve()
    _leave(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
