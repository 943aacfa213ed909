"""Counts of a minute in Redis or Valkey, by the server's clock.

A server that is down or hangs costs a caller a quarter of a second once, then nothing until it is tried
again.
"""

from __future__ import annotations

import logging
from hashlib import sha256
from itertools import count
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from gateway.cluster.shared_counts import MOST_KEPT
from pipeline.domain.clock import Clock
from pipeline.domain.ids import new_id

_log = logging.getLogger(__name__)

_FAILURES: Final = (RedisError, OSError, TimeoutError, ValueError)
_PREFIX: Final = "parlour:count:"
_ANSWER_S: Final = 0.25
_AGAIN_S: Final = 2.0
"""How long a server that failed is left alone."""
_SHOWN_S: Final = 10.0
"""How long a failure is reported without a further one: then nothing was counted meanwhile."""
# The server's time decides: the clocks of the processes differ.
_NOTE: Final = """
local now = redis.call('TIME')
local at = now[1] * 1000 + math.floor(now[2] / 1000)
local window = tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], at, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at - window)
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - tonumber(ARGV[3]))
redis.call('PEXPIRE', KEYS[1], window)
return 1"""
_OTHERS: Final = """
local now = redis.call('TIME')
local at = now[1] * 1000 + math.floor(now[2] / 1000)
local found = redis.call('ZRANGEBYSCORE', KEYS[1], at - tonumber(ARGV[2]) + 1, '+inf', 'WITHSCORES')
local ages = {}
for place = #found - 1, 1, -2 do
    if string.sub(found[place], 1, #ARGV[1]) ~= ARGV[1] then
        ages[#ages + 1] = at - tonumber(found[place + 1])
    end
end
return ages"""


class RedisCounts:
    """See `SharedCounts`."""

    def __init__(self, url: str, *, clock: Clock) -> None:
        # Nothing is repeated: a count that is lost costs accuracy.
        self._client = Redis.from_url(
            url, decode_responses=True, socket_timeout=None, retry=Retry(NoBackoff(), 0)
        )
        self._clock = clock
        self._own = new_id("count")
        self._numbers = count(1)
        self._note = self._client.register_script(_NOTE)
        self._others = self._client.register_script(_OTHERS)
        self._failed_at: float | None = None
        self._trouble = ""

    async def note(self, key: str, *, window_s: float) -> None:
        """See `SharedCounts.note`."""
        event = f"{self._own} {next(self._numbers)}"
        await self._run(self._note, key, (event, round(window_s * 1000), MOST_KEPT))

    async def others(self, key: str, *, window_s: float) -> tuple[float, ...]:
        """See `SharedCounts.others`."""
        found = await self._run(self._others, key, (f"{self._own} ", round(window_s * 1000)))
        return tuple(int(age) / 1000 for age in found or ())

    @property
    def trouble(self) -> str:
        """See `SharedCounts.trouble`."""
        failed_at = self._failed_at
        recent = failed_at is not None and self._clock.monotonic() - failed_at < _SHOWN_S
        return self._trouble if recent else ""

    async def close(self) -> None:
        """See `SharedCounts.close`."""
        try:
            await self._client.aclose()
        except _FAILURES as error:
            _log.info("the shared counts were not closed", extra={"reason": type(error).__name__})

    async def _run(self, script: Any, key: str, values: tuple[object, ...]) -> Any:
        """What the script returns; None where the server does not answer."""
        failed_at = self._failed_at
        if failed_at is not None and self._clock.monotonic() - failed_at < _AGAIN_S:
            return None
        try:
            async with self._clock.timeout(_ANSWER_S):
                # A name of a person or an address is not written out on the server.
                found = await script(keys=[_PREFIX + sha256(key.encode()).hexdigest()[:32]], args=values)
        except _FAILURES as error:
            if failed_at is None:
                _log.warning("counts are not shared", extra={"reason": type(error).__name__})
            self._failed_at = self._clock.monotonic()
            self._trouble = "redis does not answer" if isinstance(error, TimeoutError) else "redis fails"
            return None
        if failed_at is not None:
            _log.info("counts are shared again")
        self._failed_at, self._trouble = None, ""
        return found
