"""An event loop without time, files or threads: it runs what is ready, and returns when nothing is.

So the explorer sees the engine at rest: what still waits, waits for something that only the explorer gives.
"""

from __future__ import annotations

import asyncio
from asyncio.events import _set_running_loop
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVarTuple, Unpack

_Args = TypeVarTuple("_Args")


class ReadyLoop(asyncio.BaseEventLoop):
    """Runs callbacks in the order in which they became ready. Usable inside another loop's callback."""

    def __init__(self) -> None:
        super().__init__()
        self._queue: deque[tuple[asyncio.Handle, Context, Callable[..., Any], tuple[Any, ...]]] = deque()

    def call_soon(
        self,
        callback: Callable[[Unpack[_Args]], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """See `asyncio.AbstractEventLoop.call_soon`."""
        there = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, there)
        self._queue.append((handle, there, callback, args))
        return handle

    def time(self) -> float:
        """No time passes."""
        return 0.0

    def call_exception_handler(self, _context: dict[str, Any]) -> None:
        """Errors are read from the tasks."""

    def run_ready(self) -> None:
        """Run until nothing is ready."""
        outer = asyncio._get_running_loop()  # noqa: SLF001 - as any loop does, see asyncio.events
        _set_running_loop(self)
        try:
            while self._queue:
                handle, there, callback, args = self._queue.popleft()
                if not handle.cancelled():
                    there.run(callback, *args)
        finally:
            _set_running_loop(outer)
