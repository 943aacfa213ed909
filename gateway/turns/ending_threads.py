"""Let the turns of a worker that starts nothing new end: some finish, some halt, some are cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Final

from gateway.turns.live_thread import LiveThread

_POLL_S: Final = 0.2
"""How often a shutdown looks for turns that wait for a person, in seconds."""


async def end_threads(
    threads: Mapping[str, LiveThread],
    timeout_s: float,
    unanswered: Callable[[], Collection[str]],
    *,
    halt_after_s: float | None,
) -> bool:
    """Wait up to `timeout_s` seconds; False if a turn has not ended, or was cut off. The rest as in
    `Worker.drain`."""
    for live in threads.values():
        live.work.set()
    running = {thread: live.task for thread, live in threads.items() if live.task is not None}
    cut_off: set[str] = set()
    unfinished: set[asyncio.Task[object]] = set(running.values())
    loop = asyncio.get_running_loop()
    began = loop.time()
    left = timeout_s
    while unfinished and left >= 0:
        if halt_after_s is not None and loop.time() - began >= halt_after_s:
            for live in threads.values():
                if live.stop is not None:
                    live.stop.halt()
        for thread in running.keys() & set(unanswered()) - cut_off:
            running[thread].cancel()
            cut_off.add(thread)
        # Another turn may begin to wait for a person meanwhile.
        _, unfinished = await asyncio.wait(unfinished, timeout=min(left, _POLL_S))
        left = began + timeout_s - loop.time()
    return not unfinished and not cut_off
