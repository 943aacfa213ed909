"""Run a real gateway in a separate process: start it, check that it is ready, kill it, clean up.

It uses the command line and the health check, not the channels: `web_client` sends messages.
"""

from __future__ import annotations

import atexit
import os
import random
import re
import signal
import socket
import sys
from asyncio import timeout
from asyncio.subprocess import DEVNULL, Process, create_subprocess_exec
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from gateway.config import environment
from gateway.runtime.data_dir import STORE_FILE
from pipeline.domain.clock import SystemClock
from tests.support.default_store import default_storage
from tests.support.gateway_forks import ForkedProcess, fork_gateway

ROOT = Path(__file__).parents[2]
SCRIPTED = ('llm.model="scripted:echo"', 'voice.transcriber="scripted:hello"')
"""Settings of a gateway without models, which answers at once."""
AS_SHIPPED = ("turn.bursts=merge", "turn.while_busy=steer")
ONE_BY_ONE = ("turn.bursts=each", "turn.while_busy=queue")
"""Each message has a separate turn, for tests that send several at once."""
KILLED = -signal.SIGKILL

_PAGE = re.compile(r"^ +(?:page +|health and metrics at )(http://[^\s;]+)", re.MULTILINE)
_PORTS = (20_000, 32_768)
"""Below the ports that Linux assigns, which a connection of another test could take in between."""
_POLL_S = 0.01
_START_S = 60.0
_EXIT_S = 60.0
_SHOWN_CHARS = 4_000
_OTHER_RELEASE = "tests.support.upgrade_child"
_CLOCK = SystemClock()


class GatewayDied(AssertionError):
    """The process ended, or did not come up in time; its log is part of the message."""


def slow_echo(delay_s: float) -> tuple[str, ...]:
    """Settings of a gateway without models, which takes `delay_s` for each word of its answer."""
    return (f'llm.model="scripted:echo:delay={delay_s}"', SCRIPTED[1])


def free_port() -> int:
    """A port that is free now, that the system does not assign by itself, and that no other call gives."""
    while True:
        port = random.SystemRandom().randrange(*_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if _taken(port):
                return port


def _taken(port: int) -> bool:
    """Whether this process has taken `port`, until it ends: between `free_port` and the start of a gateway, a
    test of another process could otherwise get the same."""
    if sys.platform != "linux":
        return True  # names of sockets without a file exist on Linux alone
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0parlour-tests-port-{port}")
    except OSError:
        mark.close()
        return False
    atexit.register(mark.close)
    return True


async def up(gateway: GatewayProcess, channel: str) -> None:
    """Wait until a running gateway reports the account `main` of a channel as up. Raises TimeoutError."""
    async with timeout(_START_S), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{gateway.url}/readyz") as response:
                if f"{channel}:main up" in await response.text():
                    return
            await _CLOCK.sleep(_POLL_S)


class GatewayProcess:
    """One data folder's gateway, which can be started again and again. Leaving the block kills it.

    `overrides` are `SECTION.KEY=VALUE` settings, `release` is one of `upgrade_child`. `executed` starts a new
    interpreter as a user does, with the checkout `sources`; without it the process is forked, which needs a
    tenth of the processor time. When the block is left by an exception, the end of the log is added to it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        overrides: Sequence[str] = SCRIPTED,
        port: int = 0,
        executed: bool = False,
        sources: Path = ROOT,
        data_dir: Path | None = None,
        release: str = "",
    ) -> None:
        self.folder = folder
        self._sources = sources
        self.data_dir = data_dir or folder / "data"
        self.log_path = folder / "gateway.log"
        self.url = ""
        self._overrides = tuple(overrides)
        self._port = port
        self._executed = executed
        self._release = release
        self._process: Process | ForkedProcess | None = None
        self._log_offset = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._end_group()
        if error is not None and not isinstance(error, GatewayDied):
            error.add_note(self._log_words())

    @property
    def pid(self) -> int:
        """The process id of the running gateway."""
        return self._running().pid

    @property
    def returncode(self) -> int | None:
        """How the process ended; None while it lives."""
        return self._running().returncode

    @property
    def token(self) -> str:
        """The access token of the web channel."""
        return (self.data_dir / "web-token").read_text(encoding="ascii").strip()

    @property
    def store_path(self) -> Path:
        """The SQLite file."""
        return self.data_dir / STORE_FILE

    def log(self) -> str:
        """The output and log of the last started process."""
        if not self.log_path.exists():
            return ""
        with self.log_path.open("rb") as file:
            file.seek(self._log_offset)
            return file.read().decode(errors="replace")

    async def spawn(self, *, crash_at: str | None = None) -> None:
        """Start the process and return at once. `crash_at` is a crash label, `label:n`."""
        await self._end_group()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{self._port}" if self._port else ""
        # The developer's own settings must not leak into a test: neither variables nor ./parlour.toml.
        env = {name: value for name, value in environment().items() if not name.startswith("PARLOUR")}
        env["PYTHONPATH"] = str(self._sources)
        if crash_at is not None:
            env["PARLOUR_CRASH_AT"] = crash_at
        # Neither a quota nor titles between the turns, and one turn a message, unless a test asks for them.
        # Another commit may not know all of these settings.
        own = ONE_BY_ONE if self._sources == ROOT else ()
        quiet = ("limits.messages_per_minute=0", "agent.titles=false", *own)
        named = any(one.startswith("storage.kind") for one in self._overrides)
        storage = () if named or self._sources != ROOT else await default_storage(self.data_dir)
        place = (f"data.dir={self.data_dir}", f"server.port={self._port}", *storage)
        settings = (*place, *quiet, *self._overrides)
        arguments = [part for setting in settings for part in ("--set", setting)]
        command = [*([self._release] if self._release else []), "serve", *arguments]
        self._log_offset = self.log_path.stat().st_size if self.log_path.exists() else 0
        if not self._executed:
            module = _OTHER_RELEASE if self._release else ""
            self._process = await fork_gateway(
                command, folder=self.folder, env=env, log=self.log_path, module=module
            )
            return
        with self.log_path.open("ab") as log:
            self._process = await create_subprocess_exec(
                *(sys.executable, "-m", "gateway.cli", *command),
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                cwd=self.folder,
                start_new_session=True,
            )

    async def start(self, *, crash_at: str | None = None) -> None:
        """Start the process and wait until it reports that it accepts messages. Raises GatewayDied."""
        await self.spawn(crash_at=crash_at)
        try:
            async with timeout(_START_S):
                await self._wait_announced()
                await self.wait_ready()
        except TimeoutError:
            raise GatewayDied(f"not ready within {_START_S:g} s\n{self._log_words()}") from None

    async def wait_ready(self) -> None:
        """Return when /readyz answers 200; needs a known `url`. Raises GatewayDied."""
        async with aiohttp.ClientSession() as session:
            while True:
                self._require_alive()
                try:
                    async with session.get(f"{self.url}/readyz") as response:
                        if response.status == 200:
                            return
                except aiohttp.ClientError:
                    pass  # it does not listen yet
                await _CLOCK.sleep(_POLL_S)

    async def kill(self) -> None:
        """End the process as a power cut would: no handler runs. Returns when it is gone."""
        process = self._running()
        if process.returncode is None:
            process.kill()
        await process.wait()

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM)."""
        self._running().terminate()

    async def wait_exit(self) -> int:
        """The exit code, once the process has ended. Raises GatewayDied when it takes too long."""
        try:
            async with timeout(_EXIT_S):
                return await self._running().wait()
        except TimeoutError:
            raise GatewayDied(f"still running after {_EXIT_S:g} s\n{self._log_words()}") from None

    async def stop(self) -> int:
        """SIGTERM and wait; the exit code."""
        self.terminate()
        return await self.wait_exit()

    async def _wait_announced(self) -> None:
        while not self.url:
            found = _PAGE.search(self.log())
            if found:
                self.url = found.group(1)
                return
            self._require_alive()
            await _CLOCK.sleep(_POLL_S)

    def _running(self) -> Process | ForkedProcess:
        if self._process is None:
            raise GatewayDied("the gateway was not started")
        return self._process

    def _require_alive(self) -> None:
        code = self._running().returncode
        if code is not None:
            raise GatewayDied(f"ended with exit code {code}\n{self._log_words()}")

    def _log_words(self) -> str:
        return f"--- {self.log_path} ---\n{self.log()[-_SHOWN_CHARS:]}"

    async def _end_group(self) -> None:
        """Kill what remains of the last start, including its children."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):  # all of them ended by themselves
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
