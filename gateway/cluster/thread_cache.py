"""The port of the cache of threads, which may be emptied at any time."""

from __future__ import annotations

from typing import Literal, Protocol

CacheResult = Literal["hit", "miss", "failed"]


class ThreadCache(Protocol):
    """Texts by thread and fence, for a limited time. The store is the truth: an entry is what the holder of
    one lease left when it released it, so only the holder of the next lease may believe it."""

    async def take(self, thread: str, fence: int) -> str | None:
        """Remove the entry of the thread; its text if the holder of the lease with that fence left it. None
        for any other, and where the cache does not answer in time. Raises nothing."""
        ...

    async def put(self, thread: str, fence: int, text: str) -> None:
        """Leave an entry, if the cache answers in time. Raises nothing."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...
