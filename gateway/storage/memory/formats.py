"""The data format of a MemoryStore, which is always that of its program."""

from __future__ import annotations

from collections.abc import Callable

from gateway.storage.formats import StoreFormat


class MemoryFormats:
    """`FormatBook` of a store that no other program has written."""

    def __init__(self, require_open: Callable[[], None]) -> None:
        self._require_open = require_open

    async def current(self) -> StoreFormat:
        self._require_open()
        return StoreFormat()

    async def upgrade(self) -> StoreFormat:
        return await self.current()
