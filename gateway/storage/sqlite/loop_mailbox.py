"""Hand results from a thread to the loop that waits for them.

`loop.call_soon_threadsafe` wakes a loop by a pair of sockets: one call to send, and two to receive, of which
the second finds nothing. An event descriptor (Linux) needs one to write and one to read. Where the system has
none, the loop's own method is used.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LoopMailbox(Generic[T]):
    """Items on their way from one thread to a loop, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Callable[[T], None]) -> None:
        """`receive` gets each item on the loop, and may call `close`."""
        self._loop = loop
        self._receive = receive
        self._items: deque[T] = deque()
        self._descriptor = -1
        if hasattr(os, "eventfd"):
            self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            loop.add_reader(self._descriptor, self._on_items)

    def put(self, item: T) -> bool:
        """Hand over an item, in the thread. False if the loop was closed: no caller can wait for it."""
        if self._loop.is_closed():
            self._close_descriptor()
            return False
        if self._descriptor < 0:
            try:
                self._loop.call_soon_threadsafe(self._receive, item)
            except RuntimeError:  # closed meanwhile
                return False
            return True
        self._items.append(item)
        os.eventfd_write(self._descriptor, 1)
        return True

    def close(self) -> None:
        """Stop receiving, on the loop, once the thread puts nothing more."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            self._close_descriptor()

    def _on_items(self) -> None:
        # First, so that an item that comes meanwhile is announced again.
        os.eventfd_read(self._descriptor)
        while self._items:
            self._receive(self._items.popleft())

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
