"""Run platform calls with a time limit, classify their failures, and decide whether to try again.

Not here: which calls are made (`poster`, `preview`, `question_messages`) and their order (`chat_queue`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from adapters.channel import ChannelAdapter, Failure
from gateway.delivery.rate_limiter import RateLimiter
from pipeline.domain.clock import Clock, within
from pipeline.domain.errors import AlreadyDone, FenceLost, StorageError
from pipeline.graph.execution.control import asked_to_stop

_log = logging.getLogger(__name__)

T = TypeVar("T")

LONGEST_CALL_S = 180.0
"""An upper bound: longer than any adapter's own limit, including an upload and the wait for a login."""
MOST_ATTEMPTS = 3
"""Attempts for calls that are not retried for ever."""
SETTLE_S = 2.0
"""Wait before a look-up: a post without a response may still be on its way for this long."""
BLOCKED_S = 5.0
"""Wait after a rate limit without a retry time."""
_AGAIN_S = 1.0
"""Wait after the first transient failure without a retry time; each further wait is twice as long."""
_LONGEST_AGAIN_S = 10.0
_STORE_BACKOFF_S = 2.0


async def call_with_timeout(call: Awaitable[T], clock: Clock) -> T:
    """The result of `call`. Raises what it raises, and TimeoutError when it takes longer than
    `LONGEST_CALL_S` or is cancelled from inside; its effect is then unknown. A cancellation of the caller
    is passed on."""
    try:
        return await within(clock, LONGEST_CALL_S, call)
    except asyncio.CancelledError:
        if asked_to_stop():
            raise
        # For example its connection was closed: for the caller this is a failed call.
        raise TimeoutError("the call was cancelled from inside") from None


def classify_failure(adapter: ChannelAdapter, error: Exception) -> Failure:
    """The adapter's classification of `error`; `unknown` if the adapter fails to classify it."""
    try:
        return adapter.classify(error)
    except Exception:  # noqa: BLE001 - a bug in an adapter must not stop its chat queue
        _log.exception("a failure could not be classified")
        return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)


class PlatformCalls:
    """The calls to the platform for one chat: rate limit, timeout, classification of failures, retries."""

    def __init__(self, adapter: ChannelAdapter, limiter: RateLimiter, clock: Clock) -> None:
        self._adapter = adapter
        self._limiter = limiter
        self._clock = clock

    async def run(
        self,
        call: Callable[[], Awaitable[T]],
        *,
        attempts: int = 1,
        counted: bool = True,
        may_repeat: Callable[[Failure], bool] = lambda _failure: True,
    ) -> T | Failure:
        """The result of `call`, or the failure of the last attempt. A rate limit blocks the chat or account.

        Each attempt waits for the rate limiter, unless the call is not `counted`. After a rate limit or a
        transient failure another attempt follows, if `attempts` and `may_repeat` allow it."""
        attempt = 0
        while True:
            if counted:
                await self._limiter.acquire()
            try:
                return await call_with_timeout(call(), self._clock)
            except Exception as error:  # noqa: BLE001 - the adapter knows what its own errors mean
                failure = self.failed(error)
            attempt += 1
            if attempt >= attempts or not may_repeat(failure):
                return failure
            if not await self.wait_to_repeat(failure, attempt):
                return failure

    def failed(self, error: Exception) -> Failure:
        """The classification of `error`. If it is a rate limit, calls wait as long as the platform asks."""
        failure = classify_failure(self._adapter, error)
        if failure.kind == "rate_limit":
            self._limiter.back_off(failure, default_s=BLOCKED_S)
        return failure

    async def wait_to_repeat(self, failure: Failure, attempt: int) -> bool:
        """Wait until another call makes sense and return True; return False at once if none does.

        `attempt` is the number of failed attempts: without a retry time, each wait is twice as long as the
        one before."""
        if failure.kind == "rate_limit":
            await self._clock.sleep(self._limiter.wait_s())
            return True
        if failure.kind == "transient":
            again_s = min(_LONGEST_AGAIN_S, _AGAIN_S * 2 ** min(attempt - 1, 8))
            await self._clock.sleep(failure.retry_after_s or again_s)
            return True
        return False


async def retry_until_stored(write: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Repeat `write` until the store accepts it. Sending the reply again because of a temporary store failure
    would show it twice. Raises FenceLost: another process sends it now."""
    while True:
        try:
            await write()
        except AlreadyDone:
            return
        except FenceLost:
            raise
        except StorageError:
            _log.exception("delivery waits for the store")
            await clock.sleep(_STORE_BACKOFF_S)
        else:
            return
