"""Calls of a platform: a time limit, what a failure means, and whether another attempt makes sense.

Not here: which calls are made (`poster`, `preview`, `question_messages`) and their order (`chat_queue`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from adapters.channel import ChannelAdapter, Failure
from gateway.delivery.rate_limiter import RateLimiter
from pipeline.domain.clock import Clock
from pipeline.domain.errors import AlreadyDone, StorageError
from pipeline.graph.execution.control import asked_to_stop

_log = logging.getLogger(__name__)

T = TypeVar("T")

LONGEST_CALL_S = 180.0
"""The last resort: more than any adapter grants a call, an upload and the wait for a login included."""
MOST_ATTEMPTS = 3
"""Of what is tried again, but not for ever."""
BLOCKED_S = 5.0
"""How long a rate limit holds that names no time."""
AGAIN_S = 1.0
"""How long a failure that passes is waited for, where it names no time."""
_STORE_BACKOFF_S = 2.0


async def call_with_timeout(call: Awaitable[T], clock: Clock) -> T:
    """What `call` gives. Raises what it raises, and TimeoutError when it never ends, or was cancelled by
    something inside of it: what it did then is not known. A cancellation of the caller passes."""
    try:
        async with clock.timeout(LONGEST_CALL_S):
            return await call
    except asyncio.CancelledError:
        if asked_to_stop():
            raise
        # A connection that was closed under it, say: to those who wait here it is a failed call.
        raise TimeoutError("the call was cancelled from inside") from None


def classify_failure(adapter: ChannelAdapter, error: Exception) -> Failure:
    """What the adapter says that `error` means; `unknown` when it does not even say that."""
    try:
        return adapter.classify(error)
    except Exception:  # noqa: BLE001 - a bug in an adapter must not stop its lane
        _log.exception("a failure could not be classified")
        return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)


async def may_try_again(
    failure: Failure, limiter: RateLimiter, clock: Clock, *, again_s: float = AGAIN_S
) -> bool:
    """Whether another attempt makes sense, once it does. Where no time is named, after `again_s`."""
    if failure.kind == "rate_limit":
        await clock.sleep(limiter.back_off(failure, default_s=BLOCKED_S))
        return True
    if failure.kind == "transient":
        await clock.sleep(failure.retry_after_s or again_s)
        return True
    return False


async def retry_until_stored(write: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Write until the store takes it: sending again because of a store that is full for a minute would show
    the reply twice."""
    while True:
        try:
            await write()
        except AlreadyDone:
            return
        except StorageError:
            _log.exception("delivery waits for the store")
            await clock.sleep(_STORE_BACKOFF_S)
        else:
            return
