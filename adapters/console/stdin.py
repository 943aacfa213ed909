"""Read lines from a file descriptor without blocking the event loop or the process's exit.

Works for terminals, pipes and plain files. The descriptor stays in blocking mode, because a
terminal's input and output share that flag.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
from collections.abc import AsyncGenerator

_READ_BYTES = 65_536
_MAX_LINE_BYTES = 1 << 20


_KEYS = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")


def without_keys(line: str) -> str:
    """A typed line without the escape sequences of arrow and function keys, and other control characters."""
    return _KEYS.sub("", line)


async def read_lines(descriptor: int) -> AsyncGenerator[str, None]:
    """The lines of `descriptor` as they arrive, without line ends, until end of file.

    Bytes that are not UTF-8 become U+FFFD; a line over 1 MiB is split. Close the generator
    (or cancel its reader) to stop waiting; the descriptor itself is left open.
    """
    waker, wake = os.pipe()
    pending = b""
    try:
        while True:
            chunk = await _read_chunk(descriptor, waker, wake)
            *lines, pending = (pending + chunk).split(b"\n")
            if len(pending) > _MAX_LINE_BYTES or (pending and not chunk):
                lines.append(pending)
                pending = b""
            for line in lines:
                yield line.decode("utf-8", "replace").removesuffix("\r")
            if not chunk:
                return
    finally:
        os.close(wake)
        os.close(waker)


async def _read_chunk(descriptor: int, waker: int, wake: int) -> bytes:
    reading = asyncio.get_running_loop().run_in_executor(None, _wait_and_read, descriptor, waker)
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        os.write(wake, b"x")
        await reading
        raise


def _wait_and_read(descriptor: int, waker: int) -> bytes:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    poller.register(waker, select.POLLIN)
    ready = {number for number, _ in poller.poll()}
    return b"" if waker in ready else os.read(descriptor, _READ_BYTES)
