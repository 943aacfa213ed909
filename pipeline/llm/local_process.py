"""The parent's side of one child process of the local model: start, ready, end.

`local_model` restarts it; `local_child` runs inside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from pathlib import Path
from typing import Self

import pipeline
from pipeline.domain.frozen import dataclass

SLOTS = 2
"""Answers that the embedded model generates at the same time."""

_STOP_S = 3.0
_LINE_BYTES = 1 << 20
_IMPORT_ROOT = Path(pipeline.__file__).parent.parent
"""The child's working directory, so that `-m` finds this package, installed or in a checkout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSettings:
    """The child's model and its share of the machine."""

    model_path: Path
    context_tokens: int = 4096
    """Prompt and answer together, for each of the slots."""
    slots: int = SLOTS
    """Answers generated at the same time."""
    threads: int = 0
    """Compute threads; 0 chooses for this machine."""


class ChildFailed(Exception):
    """The child ended or reported that it cannot serve; the text is the reason."""


class ChildProcess:
    """A running child. Made by `start`, ended by `stop`, which must be called."""

    def __init__(self, process: Process, key: str) -> None:
        self._process = process
        self.key = key
        """The random key that requests to this child must have."""
        self._last_words = ""

    @classmethod
    async def start(cls, settings: ChildSettings) -> Self:
        """Start the process; it is not ready yet. Raises OSError when it cannot be started."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "pipeline.llm.local_child",
            f"--model={settings.model_path.absolute()}",
            f"--context={settings.context_tokens}",
            f"--slots={settings.slots}",
            f"--threads={settings.threads}",
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            cwd=_IMPORT_ROOT,
            # The whole environment: the native code gets no secret of the gateway.
            env={"PYTHONUTF8": "1", "PYTHONPATH": str(_IMPORT_ROOT)},
            limit=_LINE_BYTES,
            # Ctrl-C in a terminal goes to the whole group; the turn in flight still needs the model.
            start_new_session=True,
        )
        child = cls(process, secrets.token_hex(16))
        if process.stdin is not None:
            # Sent over the pipe, because every user of the machine can read command lines.
            process.stdin.write(f"{child.key}\n".encode())
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> int:
        """Wait until the child serves. Returns its port on 127.0.0.1. Raises ChildFailed."""
        while line := await self._line():
            words = _announcement(line)
            if "port" in words:
                return int(words["port"])
            if "error" in words:
                raise ChildFailed(words["error"])
        raise ChildFailed(await self.ended())

    async def ended(self) -> str:
        """Wait for the end of the process and read its output. Returns a readable reason for its end."""
        while await self._line():
            pass
        code = await self._process.wait()
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"{how}: {self._last_words}" if self._last_words else how

    async def answers(self, port: int, within_s: float) -> bool:
        """Whether its server answers at all within `within_s` seconds: a busy server does, a hanging one
        does not."""
        try:
            async with asyncio.timeout(within_s):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                    return bool(await reader.read(1))
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False

    def kill(self) -> None:
        """Kill the process at once; `ended` returns when it is over."""
        if self._process.returncode is None:
            self._process.kill()

    async def stop(self) -> None:
        """End the process: ask by closing its input, then kill. Safe to call more than once."""
        if self._process.returncode is not None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_S):
                    await self.ended()
        finally:
            # The process still runs here after the timeout and when the caller is cancelled.
            if self._process.returncode is None:
                self._process.kill()
                await self.ended()

    async def _line(self) -> str:
        """The next line that the child prints; empty at the end."""
        if self._process.stdout is None:
            return ""
        raw = await self._process.stdout.readline()
        line = raw.decode("utf-8", "replace")
        self._last_words = line.strip() or self._last_words
        return line


def _announcement(line: str) -> dict[str, str]:
    """The child's JSON line; nothing for what native code prints."""
    try:
        words = json.loads(line)
    except ValueError:
        return {}
    return {key: str(value) for key, value in words.items()} if isinstance(words, dict) else {}
