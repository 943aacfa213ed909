"""The cache of threads in Redis or Valkey, with a time to live.

A server that is down or hangs costs a turn a quarter of a second once, then nothing until it is tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from gateway.cluster.thread_cache import CacheResult
from pipeline.domain.clock import Clock

_log = logging.getLogger(__name__)

_FAILURES: Final = (RedisError, OSError, TimeoutError, ValueError)
_PREFIX: Final = "parlour:thread:"
_ANSWER_S: Final = 0.25
_AGAIN_S: Final = 2.0
"""How long a server that failed is left alone."""
MOST_BYTES: Final = 512 * 1024
"""A longer text is not cached."""


class RedisThreadCache:
    """See `ThreadCache`."""

    def __init__(
        self,
        url: str,
        *,
        ttl_s: int,
        clock: Clock,
        count: Callable[[CacheResult], None] = lambda _result: None,
    ) -> None:
        """`ttl_s` is for how many seconds an entry is kept; `count` is called with how each `take` ended."""
        # Nothing is repeated: the store is read instead.
        self._client = Redis.from_url(
            url, decode_responses=True, socket_timeout=None, retry=Retry(NoBackoff(), 0)
        )
        self._ttl_s = ttl_s
        self._clock = clock
        self._count = count
        self._failed_at: float | None = None

    async def take(self, thread: str, fence: int) -> str | None:
        """See `ThreadCache.take`."""
        if not self._is_tried():
            self._count("failed")
            return None
        try:
            async with self._clock.timeout(_ANSWER_S):
                # Read and removed at once: what this holder does is not in it.
                found = await self._client.getdel(_PREFIX + thread)
        except _FAILURES as error:
            self._note(error)
            self._count("failed")
            return None
        self._failed_at = None
        left, _, text = str(found or "").partition("\n")
        is_hit = left == str(fence)
        self._count("hit" if is_hit else "miss")
        return text if is_hit else None

    async def put(self, thread: str, fence: int, text: str) -> None:
        """See `ThreadCache.put`."""
        if len(text.encode()) > MOST_BYTES or not self._is_tried():
            return
        try:
            async with self._clock.timeout(_ANSWER_S):
                await self._client.set(_PREFIX + thread, f"{fence}\n{text}", ex=self._ttl_s)
        except _FAILURES as error:
            self._note(error)

    async def close(self) -> None:
        """See `ThreadCache.close`."""
        try:
            await self._client.aclose()
        except _FAILURES as error:
            _log.info("the cache was not closed", extra={"reason": type(error).__name__})

    def _is_tried(self) -> bool:
        return self._failed_at is None or self._clock.monotonic() - self._failed_at >= _AGAIN_S

    def _note(self, error: Exception) -> None:
        if self._failed_at is None:
            _log.warning("the cache of threads fails", extra={"reason": type(error).__name__})
        self._failed_at = self._clock.monotonic()
