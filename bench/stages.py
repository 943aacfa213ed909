"""Say on the standard error what a long bench is doing, and end a part that takes too long."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.report import BenchUnavailable
from pipeline.domain.clock import SystemClock
from tests.support.time_limit import time_limit

_CLOCK = SystemClock()


def say(line: str) -> None:
    """Print a line of progress, which is no part of the report."""
    print(f"bench: {line}", file=sys.stderr, flush=True)


@asynccontextmanager
async def stage(name: str, *, limit_s: float) -> AsyncIterator[None]:
    """One part of a bench, in the block. Raises BenchUnavailable if it takes longer than `limit_s`."""
    say(f"{name} …")
    began = _CLOCK.monotonic()
    words = f"{name} took more than {limit_s:.0f} s and was ended; see the lines above for where it was"
    async with time_limit(limit_s, BenchUnavailable(words)):
        yield
    say(f"{name}: {_CLOCK.monotonic() - began:.0f} s")
