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
from pipeline.domain.clock import Clock
from pipeline.domain.errors import AlreadyDone, StorageError
from pipeline.graph.execution.control import asked_to_stop

_log = logging.getLogger(__name__)

T = TypeVar("T")

LONGEST_CALL_S = 180.0
"""An upper bound: longer than any adapter's own limit, including an upload and the wait for a login."""
MOST_ATTEMPTS = 3
"""Attempts for calls that are not retried for ever."""
BLOCKED_S = 5.0
"""Wait after a rate limit without a retry time."""
AGAIN_S = 1.0
"""Wait after a transient failure without a retry time."""
_STORE_BACKOFF_S = 2.0


async def call_with_timeout(call: Awaitable[T], clock: Clock) -> T:
    """The result of `call`. Raises what it raises, and TimeoutError when it takes longer than
    `LONGEST_CALL_S` or is cancelled from inside; its effect is then unknown. A cancellation of the caller
    is passed on."""
    try:
        async with clock.timeout(LONGEST_CALL_S):
            return await call
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


async def may_try_again(
    failure: Failure, limiter: RateLimiter, clock: Clock, *, again_s: float = AGAIN_S
) -> bool:
    """Wait until another attempt makes sense and return True; return False at once if none does.

    After a transient failure without a retry time it waits `again_s` seconds."""
    if failure.kind == "rate_limit":
        await clock.sleep(limiter.back_off(failure, default_s=BLOCKED_S))
        return True
    if failure.kind == "transient":
        await clock.sleep(failure.retry_after_s or again_s)
        return True
    return False


async def retry_until_stored(write: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Repeat `write` until the store accepts it. Sending the reply again because of a temporary store failure
    would show it twice."""
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
