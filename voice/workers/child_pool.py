"""A few child processes of one program, each for one request at a time, started when they are needed.

Not here: the requests, and when a child is trusted no longer. The owner releases or discards each child that
it has taken.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from voice.workers.child import Child, Dying, OnLine


class PoolClosed(Exception):
    """The pool gives out no child any more."""


class ChildPool:
    """Belongs to the event loop that it is first used on. At most `size` children run, as long as each is
    taken inside of `turns`."""

    def __init__(
        self,
        program: Sequence[str],
        on_line: OnLine,
        *,
        size: int,
        max_body_bytes: int,
        start_limit: Callable[[], AbstractAsyncContextManager[object]],
    ) -> None:
        """`on_line` gets what the children write to stderr, `max_body_bytes` limits their frames, and
        `start_limit` makes the time limit of a start."""
        self._program = tuple(program)
        self._on_line = on_line
        self._size = size
        self._max_body_bytes = max_body_bytes
        self._start_limit = start_limit
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._dying = Dying()
        self.turns = asyncio.Semaphore(size)
        self.closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the running children."""
        return tuple(child.pid for child in (*self._idle, *self._busy) if child.alive)

    async def take(self) -> Child:
        """A started child, now busy: the one that was used last, or a new one.

        Raises PoolClosed, TimeoutError after the time for a start, and TranscriberUnavailable.
        """
        self._refuse_when_closed()
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                self._busy.add(child)
                return child
            self.discard(child)
        child = await Child.start(self._program, self._on_line, max_body_bytes=self._max_body_bytes)
        self._busy.add(child)
        try:
            self._refuse_when_closed()
            async with self._start_limit():
                await asyncio.shield(child.ready)
        except BaseException:
            self.discard(child)
            raise
        return child

    def release(self, child: Child) -> bool:
        """Keep a child for the next request; False if it was discarded, because it has ended or the pool
        is closed."""
        if self.closed or not child.alive:
            self.discard(child)
            return False
        self._busy.discard(child)
        self._idle.append(child)
        return True

    def discard(self, child: Child) -> None:
        """Kill a child, and track it until it has ended."""
        self._busy.discard(child)
        if child in self._idle:
            self._idle.remove(child)
        self._dying.end(child)

    async def close(self) -> None:
        """Kill every child and wait until they have ended."""
        self.closed = True
        for child in (*self._idle, *self._busy):
            self.discard(child)
        async with contextlib.AsyncExitStack() as turns:
            for _ in range(self._size):  # then every start in progress has failed and cleaned up
                await turns.enter_async_context(self.turns)
        await self._dying.gone()

    def _refuse_when_closed(self) -> None:
        if self.closed:
            raise PoolClosed
