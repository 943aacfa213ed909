"""A limit for a part of a long run, after which it fails in words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def time_limit(limit_s: float, late: Exception) -> AsyncIterator[None]:
    """Let the block take so many seconds at most. Raises `late` after that; a TimeoutError of the block
    itself is passed on."""
    limit = asyncio.timeout(limit_s)
    try:
        async with limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise late from None
        raise
