"""Errors of writes: report a failed append once, and refuse a lease that is stale or another's."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from gateway.storage.ports import Lease
from pipeline.domain.errors import FenceLost

_log = logging.getLogger(__name__)


def report_if_failed(future: asyncio.Future[Any], lease: Lease) -> None:
    """Log the failure of `future` once and mark its exception as retrieved.

    A caller that awaits the future still gets the exception.
    """

    def report(done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            _log.warning("append to thread %s with fence %d failed: %s", lease.thread, lease.fence, error)

    if future.done():
        # A callback would run in the next step of the loop, which may not come.
        report(future)
    else:
        future.add_done_callback(report)


def fence_lost(lease: Lease) -> FenceLost:
    """The error for a stale lease."""
    return FenceLost(
        f"thread {lease.thread}: fence {lease.fence} of {lease.owner} is no longer current; "
        "nothing was written"
    )


def foreign_row(lease: Lease, row_id: int) -> FenceLost:
    """The error for a lease that is current, but of another thread or account than the outbox row."""
    return FenceLost(f"outbox row {row_id} is not one of {lease.thread}; nothing was written")
