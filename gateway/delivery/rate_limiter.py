"""Limit the rate of outbound calls: token buckets, and the waits that a platform asks for.

Not here: per-user limits on incoming messages, which are in `gateway.access`.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapters.channel import Failure, RateLimits
from pipeline.domain.clock import Clock
from pipeline.domain.rates import TokenBucket

_ROOM_BURST_SHARE = 0.5
"""The share of a minute's calls that may go at once."""
_LEAST_WAIT_S = 0.2
"""Minimum wait after "too many requests": a stated wait of 0 would lead to a burst of calls."""

_ROUNDING_S = 1e-9
"""Rounding error of a wait that is over: too short for the clock to advance."""


class Bucket:
    """A token bucket that can be blocked. `per_s` is the refill rate; 0 means no limit except `block`."""

    def __init__(self, clock: Clock, *, per_s: float, burst: int) -> None:
        self._clock = clock
        self._burst = max(1, burst)
        self._tokens: TokenBucket | None = None
        if per_s > 0:
            self._tokens = TokenBucket(per_s=per_s, size=self._burst, now=clock.monotonic())
        self._blocked_until = 0.0

    def wait_s(self, *, reserve: int = 0) -> float:
        """Seconds until a call may go that leaves `reserve` tokens; 0 for now.

        A reserve larger than the bucket means a full bucket."""
        now = self._clock.monotonic()
        wait = self._blocked_until - now
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait_s(now, 1 + reserve))
        return wait if wait > _ROUNDING_S else 0.0

    def take(self) -> None:
        """Spend a token. Below zero the next caller waits longer."""
        if self._tokens is not None:
            self._tokens.take(self._clock.monotonic())

    def block(self, seconds: float) -> None:
        """Let nothing through for that long, whatever the tokens say."""
        self._blocked_until = max(self._blocked_until, self._clock.monotonic() + seconds)

    @property
    def idle(self) -> bool:
        """Whether a fresh bucket would behave the same."""
        return self.wait_s(reserve=self._burst) == 0.0


class RateLimiter:
    """What one chat may use: its own buckets, and the account's, which it shares."""

    def __init__(self, clock: Clock, chat: Sequence[Bucket], account: Bucket) -> None:
        self._clock = clock
        self._chat = tuple(chat)
        self._account = account

    @classmethod
    def of_chat(cls, clock: Clock, limits: RateLimits, account: Bucket, *, private: bool) -> RateLimiter:
        """The limiter of a fresh chat under `limits`."""
        buckets = [Bucket(clock, per_s=limits.chat_per_s, burst=limits.chat_burst)]
        if not private and limits.room_per_minute > 0:
            burst = int(limits.room_per_minute * _ROOM_BURST_SHARE)
            buckets.append(Bucket(clock, per_s=limits.room_per_minute / 60, burst=burst))
        return cls(clock, buckets, account)

    @property
    def idle(self) -> bool:
        """Whether it may be forgotten."""
        return all(bucket.idle for bucket in self._chat)

    def wait_s(self, *, reserve: int = 0) -> float:
        """Seconds until a call may go; `reserve` is left for others."""
        return max(bucket.wait_s(reserve=reserve) for bucket in (*self._chat, self._account))

    def take(self) -> None:
        """Spend one call."""
        for bucket in (*self._chat, self._account):
            bucket.take()

    async def acquire(self) -> None:
        """Wait for a call that must go, and spend it."""
        while (wait := self.wait_s()) > 0:
            await self._clock.sleep(wait)
        self.take()

    def back_off(self, failure: Failure, *, default_s: float) -> float:
        """Take the platform's "too many requests" at its word; how long it takes, in seconds."""
        seconds = default_s if failure.retry_after_s is None else max(_LEAST_WAIT_S, failure.retry_after_s)
        target = self._account if failure.whole_account else self._chat[0]
        target.block(seconds)
        return seconds


def account_bucket(clock: Clock, limits: RateLimits) -> Bucket:
    """The bucket that all chats of an account share."""
    return Bucket(clock, per_s=limits.account_per_s, burst=max(1, int(limits.account_per_s)))
