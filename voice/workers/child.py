"""Control one child process from its parent: start, request, kill. Not here: queue, deadlines, restarts.

A child is a program of this package that sends frames (`voice.workers.frames`) on its standard input and
output. It sends `ready` or `unavailable` once, then answers each request, which carries a `job`, with any
number of frames and a last one that has `"final": true` in its header.

Built on asyncio's subprocess protocol: answers arrive in callbacks, so no task has to read the
pipes and cancelling a caller leaves no frame half read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import voice
from voice.errors import TranscriberUnavailable
from voice.workers.frames import FrameReader, WorkerFrame, error_from_wire

OnLine = Callable[[str], None]
OnFrame = Callable[[WorkerFrame], None]

DIED = "The voice recogniser stopped while it was listening. Please send the recording again."
_MAX_LINE_BYTES = 8192


def command(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that starts `module` of this package, with its parent's process id as an option."""
    # -P keeps the working directory off the import path: a file there must not replace a library.
    interpreter = (sys.executable, "-P", "-X", "faulthandler", "-m", module)
    return (*interpreter, "--parent-pid", str(os.getpid()), *arguments)


class Child(asyncio.SubprocessProtocol):
    """A running program. Takes one request at a time; `alive` is False for good once it has ended."""

    def __init__(self, on_line: OnLine, *, max_body_bytes: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self.pid = 0
        self.alive = True
        self.ready: asyncio.Future[None] = loop.create_future()
        """Done when it can take requests; fails with TranscriberUnavailable."""
        self.ended: asyncio.Future[None] = loop.create_future()
        """Done when the process has ended and its pipes are closed."""
        self._on_line = on_line
        self._frames = FrameReader(max_body_bytes=max_body_bytes)
        self._line = bytearray()
        self._transport: asyncio.SubprocessTransport | None = None
        self._jobs = 0
        self._answer: asyncio.Future[WorkerFrame] | None = None
        self._on_frame: OnFrame = _ignore
        self._killed = False

    @classmethod
    async def start(cls, command: Sequence[str], on_line: OnLine, *, max_body_bytes: int = 0) -> Self:
        """Start the program; `on_line` gets each line that it writes to stderr, and its frames may have
        `max_body_bytes` in addition to the header. Raises TranscriberUnavailable."""
        loop = asyncio.get_running_loop()
        try:
            _, child = await loop.subprocess_exec(
                lambda: cls(on_line, max_body_bytes=max_body_bytes),
                *command,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            detail = f"the program {command[0]} could not be started: {error.strerror}"
            raise TranscriberUnavailable(detail=detail) from error
        return child

    async def ask(self, request: WorkerFrame, *, on_frame: OnFrame | None = None) -> WorkerFrame:
        """Send a request and wait for its final frame; `on_frame` gets the frames before it, at once.

        Raises AudioRefused, or TranscriberUnavailable when the process dies first.
        """
        if not self.alive or self._transport is None:
            raise TranscriberUnavailable(DIED)
        stdin = self._transport.get_pipe_transport(0)
        if not isinstance(stdin, asyncio.WriteTransport):
            raise TranscriberUnavailable(DIED)
        self._jobs += 1
        self._answer = asyncio.get_running_loop().create_future()
        self._on_frame = on_frame or _ignore
        try:
            stdin.write(replace(request, header={**request.header, "job": self._jobs}).encode())
            answer = await self._answer
        finally:
            self._answer = None
            self._on_frame = _ignore
        if answer.header.get("kind") == "refused":
            raise error_from_wire(answer.header)
        return answer

    def kill(self) -> None:
        """End the process now, and ignore all further output. Safe to call more than once; `ended` is done
        when the process has ended."""
        self.alive, self._killed = False, True
        if self._transport is not None:
            with contextlib.suppress(ProcessLookupError):
                self._transport.kill()

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.SubprocessTransport):
            self._transport = transport
            self.pid = transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._take_log(data)
            return
        try:
            for frame in () if self._killed else self._frames.feed(data):
                self._take(frame)
        except Exception as error:  # noqa: BLE001 - any error that a hostile program's frames can cause
            self._on_line(f"the worker broke the protocol and is stopped: {error}")
            self.kill()

    def process_exited(self) -> None:
        self.alive = False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop's signature
        self.alive = False
        if self._transport is not None:
            self._transport.close()
        for future in (self.ready, self._answer):
            if future is not None and not future.done():
                future.set_exception(TranscriberUnavailable(DIED))
                future.exception()  # avoids asyncio's warning where no caller waits
        self._flush_log()
        if not self.ended.done():
            self.ended.set_result(None)

    def _take(self, frame: WorkerFrame) -> None:
        header = frame.header
        kind = header.get("kind")
        if kind == "ready" and not self.ready.done():
            self.ready.set_result(None)
        elif kind == "unavailable" and not self.ready.done():
            self.ready.set_exception(error_from_wire(header))
            self.ready.exception()  # avoids asyncio's warning where no caller waits
        elif header.get("job") == self._jobs and self._answer is not None and not self._answer.done():
            if header.get("final") is True:
                self._answer.set_result(frame)
            else:
                self._on_frame(frame)

    def _take_log(self, data: bytes) -> None:
        self._line += data
        while (end := self._line.find(b"\n")) >= 0 or len(self._line) > _MAX_LINE_BYTES:
            cut = end if end >= 0 else _MAX_LINE_BYTES
            line = bytes(self._line[:cut])
            del self._line[: cut + (end >= 0)]
            if line.strip():
                self._on_line(line.decode(errors="replace"))

    def _flush_log(self) -> None:
        if self._line.strip():
            self._on_line(bytes(self._line).decode(errors="replace"))
        self._line.clear()


class Dying:
    """The children that one owner has killed, until they have ended."""

    def __init__(self) -> None:
        self._children: set[Child] = set()

    def end(self, child: Child) -> None:
        """Kill `child`. Safe to call more than once."""
        child.kill()
        if not child.ended.done() and child not in self._children:
            self._children.add(child)
            child.ended.add_done_callback(lambda _: self._children.discard(child))

    async def gone(self) -> None:
        """Wait until all have ended."""
        while self._children:
            # Not the futures themselves: cancelling the waiter must not cancel them.
            await asyncio.wait({child.ended for child in self._children})


def _ignore(frame: WorkerFrame) -> None:
    """Ignore an unexpected frame."""


def _environment() -> dict[str, str]:
    """The child's whole environment: it contains no secret of the gateway."""
    return {
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        # Otherwise onnxruntime opens a database in the cache folder and sends telemetry to its vendor.
        "ORT_DISABLE_TELEMETRY": "1",
        "MALLOC_ARENA_MAX": "2",
        "PYTHONUTF8": "1",
        "PYTHONPATH": str(Path(voice.__file__).parent.parent),
    }
