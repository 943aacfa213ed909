"""Copies of books in the memory of one process, kept as new as the store where other processes write too.

A copy is at most `LOOK_S` seconds behind: the store is looked at so often, a signal makes a look come
earlier, and who grants a right by a copy calls `fresh` before.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn

from gateway.storage.changes import ChangeBook, CopiedBook
from pipeline.domain.clock import Clock, within
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""Seconds between two looks at what other processes have changed."""

Reload = Callable[[], Awaitable[None]]
"""Reads a book again. Raises StorageError."""


class BookCopies:
    """Reads books again that have changed, and all at the first look. Name them by `keep`, and run `run` as
    a supervised task."""

    def __init__(self, changes: ChangeBook, clock: Clock) -> None:
        self._changes = changes
        self._clock = clock
        self._reload: dict[CopiedBook, Reload] = {}
        self._known: dict[CopiedBook, int] = {}
        self._looked_at = -math.inf
        """When the last look began that found everything, by the monotonic clock."""
        self._looking = asyncio.Lock()
        self._wanted = asyncio.Event()

    def keep(self, book: CopiedBook, reload: Reload) -> None:
        """Call `reload` whenever the book has changed."""
        self._reload[book] = reload

    def note_changed(self, book: str) -> None:
        """Look soon: the book has changed. Does nothing for a book of which there is no copy."""
        if book in self._reload:
            self._wanted.set()

    async def fresh(self) -> None:
        """Make sure that no copy is older than `LOOK_S` seconds. Raises StorageError if it cannot."""
        if self._is_old():
            async with self._looking:
                # Another caller may have looked meanwhile.
                if self._is_old():
                    await self._look()

    async def run(self) -> NoReturn:
        """Look at the store every second and after each signal, for ever."""
        while True:
            self._wanted.clear()
            try:
                async with self._looking:
                    await self._look()
            except StorageError as error:
                _log.warning("changed books are not read", extra={"reason": str(error)})
            with suppress(TimeoutError):
                await within(self._clock, LOOK_S, self._wanted.wait())

    def _is_old(self) -> bool:
        return self._clock.monotonic() - self._looked_at > LOOK_S

    async def _look(self) -> None:
        began = self._clock.monotonic()
        for book, revision in (await self._changes.revisions()).items():
            if self._known.get(book) != revision and book in self._reload:
                # Read after the revision: a later change has a later one.
                await self._reload[book]()
                self._known[book] = revision
        self._looked_at = began
