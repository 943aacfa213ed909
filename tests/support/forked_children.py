"""Run a program of tests/support, which opens a separate gateway, in a forked process: until it ends or
until it is up. Not for `parlour` itself (`gateway_process`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pipeline.domain.clock import SystemClock
from tests.support.gateway_forks import ForkedProcess, fork_module

_UP_S = 60.0
_POLL_S = 0.005
_CLOCK = SystemClock()


async def run_child(module: str, *arguments: str, log: Path) -> int:
    """The exit code of `module`, negative for a signal. What it prints is appended to `log`."""
    async with child(module, *arguments, log=log) as process:
        return await process.wait()


@asynccontextmanager
async def child_up(module: str, *arguments: str, log: Path) -> AsyncIterator[ForkedProcess]:
    """`module`, which has printed `up` into the new file `log`; it is killed at the end of the block. Raises
    AssertionError when it ends before, TimeoutError when it takes too long."""
    async with child(module, *arguments, log=log) as process:
        async with asyncio.timeout(_UP_S):
            while "up" not in (printed := _printed(log)).splitlines():
                assert process.returncode is None, printed
                await _CLOCK.sleep(_POLL_S)
        yield process


@asynccontextmanager
async def child(module: str, *arguments: str, log: Path) -> AsyncIterator[ForkedProcess]:
    """`module`, which is killed at the end of the block."""
    process = await fork_module(module, *arguments, log=log)
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


def _printed(log: Path) -> str:
    return log.read_text("utf-8") if log.exists() else ""
