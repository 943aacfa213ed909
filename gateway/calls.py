"""One call to a channel's adapter, and what its failure means. The adapter's own deadlines come first; here
is the last resort, so that no call can hold a chat up for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from adapters.channel import ChannelAdapter, Failure
from pipeline.domain.clock import Clock
from pipeline.graph.control import asked_to_stop

_log = logging.getLogger(__name__)

LONGEST_CALL_S = 180.0
"""More than any adapter grants a call, an upload and the wait for a login included."""

T = TypeVar("T")


async def one_call(call: Awaitable[T], clock: Clock) -> T:
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


def understood(adapter: ChannelAdapter, error: Exception) -> Failure:
    """What the adapter says that `error` means; `unknown` when it does not even say that."""
    try:
        return adapter.classify(error)
    except Exception:  # noqa: BLE001 - a bug in an adapter must not stop its lane
        _log.exception("a failure could not be classified")
        return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)
