"""An MCP server's process: send and receive lines, log its errors, and end it reliably.

`mcp_client` interprets the lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence

from pipeline.redaction.redactor import Redactor

_log = logging.getLogger(__name__)

MAX_LINE_BYTES = 32 << 20
"""The most of one message. It allows for a result of ten megabytes, which many servers send twice in one
message; the gate cuts it later."""
_STOP_S = 1.0
_LAST_WORDS_S = 0.5
_SHOWN_LINES = 100
_SHOWN_CHARS = 500
_VERY_LONG = b"(a very long line)"


class McpChild:
    """A running server. Made by `start`, ended by `stop`, which must be called; run `errors` meanwhile."""

    def __init__(self, name: str, process: Process) -> None:
        self._name = name
        self._process = process
        self._last_words = ""
        self._silent = asyncio.Event()

    @classmethod
    async def start(
        cls, name: str, command: Sequence[str], *, env: Mapping[str, str], cwd: str | None
    ) -> McpChild:
        """Start the program with exactly this environment. Raises OSError or ValueError on failure."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(env),
            cwd=cwd,
            limit=MAX_LINE_BYTES,
            # A separate process group: the server's children end with it, and Ctrl-C does not reach it.
            start_new_session=True,
        )
        return cls(name, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_words(self) -> str:
        """The last line of its stderr; empty if there was none."""
        return self._last_words

    async def line(self) -> bytes:
        """The next message; empty at the end, and when one is longer than `MAX_LINE_BYTES`."""
        if self._process.stdout is None:
            return b""
        try:
            return await self._process.stdout.readline()
        except ValueError:
            self._last_words = f"it sent a message of more than {MAX_LINE_BYTES >> 20} megabytes"
            return b""

    async def all_said(self) -> None:
        """Return when its stderr has been read to the end, or after a limit."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._silent.wait()

    async def send(self, data: bytes) -> None:
        """Send a message. Errors are ignored: the end of its lines shows that the process has ended."""
        if self._process.stdin is None:
            return
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def errors(self, redactor: Redactor) -> None:
        """Log its stderr, without secrets and up to a limit, and keep reading so that the process never
        blocks."""
        shown, torn = 0, False
        while part := await self._error_line():
            # The text after a part of a line is the rest of the line and may begin inside a secret.
            torn, rest = part is _VERY_LONG, torn
            if rest:
                continue
            words = redactor.line(part.decode("utf-8", "replace"), _SHOWN_CHARS)
            if not words:
                continue
            self._last_words = words
            shown += 1
            if shown <= _SHOWN_LINES:
                _log.info("an MCP server says", extra={"server": self._name, "line": words})
        self._silent.set()

    async def stop(self) -> None:
        """End it and its children: close its input, then send signals. Safe to call more than once."""
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
            for number in (signal.SIGTERM, signal.SIGKILL):
                if await self._ended():
                    break
                self._signal(number)
        finally:
            # Reached also when the caller is cancelled, and for children that outlive the server.
            self._signal(signal.SIGKILL)
        await self._ended()

    async def _ended(self) -> bool:
        try:
            async with asyncio.timeout(_STOP_S):
                await self._process.wait()
        except TimeoutError:
            return self._process.returncode is not None
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _error_line(self) -> bytes:
        if self._process.stderr is None:
            return b""
        try:
            return await self._process.stderr.readline()
        except ValueError:
            # A line without an end: the buffer has been dropped, and the line continues.
            return _VERY_LONG
