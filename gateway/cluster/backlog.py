"""The queue of signals that wait to be sent or shown: bounded, in order, merged where the port allows it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

MOST_TOKENS: Final = 256
"""Tokens of answers that wait at most; a further one replaces the oldest."""
MOST_SIGNALS: Final = 10_000
"""Signals of all kinds that wait at most while a server is away; a further one replaces the oldest."""


class Backlog(Generic[T]):
    """A queue whose items may replace earlier ones with the same key. One task takes from it."""

    def __init__(self, *, most_tokens: int = MOST_TOKENS, most: int = MOST_SIGNALS) -> None:
        self._items: dict[Hashable, T] = {}
        """In order, by key."""
        self._tokens: deque[Hashable] = deque()
        self._most_tokens = most_tokens
        self._most = most
        self._filled = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._taken = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T, *, key: Hashable = None, token: bool = False) -> None:
        """Append `item`. With `key`, it replaces a waiting one of that key and takes its place at the end.
        A token may be left out when too many wait."""
        key = object() if key is None else key
        self._items.pop(key, None)
        self._items[key] = item
        if token:
            self._tokens.append(key)
            if len(self._tokens) > self._most_tokens:
                self._items.pop(self._tokens.popleft(), None)
        if len(self._items) > self._most:
            del self._items[next(iter(self._items))]
        self._filled.set()
        self._empty.clear()

    async def take(self, most: int) -> list[T]:
        """The oldest items, one at least and `most` at most; waits for them. Follow it by `done`."""
        while not self._items:
            self._filled.clear()
            await self._filled.wait()
        keys = [key for key, _ in zip(self._items, range(most), strict=False)]
        taken = [self._items.pop(key) for key in keys]
        # Tokens leave in the order in which they came, so those that were taken are the first.
        while self._tokens and self._tokens[0] not in self._items:
            self._tokens.popleft()
        self._taken = True
        return taken

    def done(self) -> None:
        """What was taken is sent or shown."""
        self._taken = False
        if not self._items:
            self._empty.set()

    async def settled(self) -> None:
        """Wait until nothing waits and everything taken is done."""
        await self._empty.wait()

    def clear(self) -> None:
        """Drop everything that waits."""
        self._items.clear()
        self._tokens.clear()
        if not self._taken:
            self._empty.set()
