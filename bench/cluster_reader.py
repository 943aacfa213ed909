"""The receiving process of the cluster bench: `python -m bench.cluster_reader KIND URL`.

It prints one line for each wake, for each window of tokens and for the end of a turn: the word, a number (of
the tokens that were shown), the processor seconds of the process, and the time at which it was called. That
is of Linux's monotonic clock, which is the same in all processes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Final

from gateway.cluster.postgres_transport import PostgresTransport
from gateway.cluster.redis_transport import RedisTransport
from gateway.cluster.remote import RemoteBus
from gateway.cluster.signals import LiveTurn
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import SystemClock
from pipeline.domain.events import LlmToken, PipelineEvent
from pipeline.domain.ids import AccountKey, ThreadKey

ACCOUNT: Final[AccountKey] = ("telegram", "main")
WINDOW: Final = 64
"""Tokens after which one line says that they were shown."""
_CLOCK = SystemClock()


Report = Callable[[str, int, float, float], None]
"""Gets the word, the tokens shown, the processor seconds and the time."""


class Reader:
    """An account's reader that counts tokens and reports, see above."""

    def __init__(self, report: Report) -> None:
        self._tokens = 0
        self._to = report

    def sender_for(self, _turn: LiveTurn) -> Reader:
        """See `EventReader.sender_for`."""
        return self

    def observe(self, thread: ThreadKey, event: PipelineEvent) -> None:
        """See `EventReader.observe`."""

    async def send_event(self, event: PipelineEvent) -> None:
        """Count a token; report a full window, and the end of a turn."""
        if not isinstance(event, LlmToken):
            self._report("end")
            return
        self._tokens += 1
        if self._tokens % WINDOW == 0:
            self._report("window")

    def wake(self, _thread: str) -> None:
        """Report a wake."""
        self._report("wake")

    def _report(self, word: str) -> None:
        at = _CLOCK.monotonic()
        self._to(word, self._tokens, time.process_time(), at)


def remote_bus(kind: str, url: str) -> RemoteBus:
    """A bus over the server at `url`, not opened."""
    transport = RedisTransport(url) if kind == "redis" else PostgresTransport(url)
    return RemoteBus((transport,), _CLOCK, Supervisor().spawn)


async def run(kind: str, url: str) -> None:
    """Listen until the other end of the standard input is closed."""
    bus, reader = remote_bus(kind, url), Reader(_print)
    bus.on_wake(reader.wake)
    bus.on_events(ACCOUNT, reader)
    await bus.open()
    await bus.round_trip()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await bus.close()


def _print(word: str, tokens: int, cpu_s: float, at: float) -> None:
    print(word, tokens, cpu_s, at, flush=True)


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
