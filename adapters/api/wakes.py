"""Wake those who wait for news of a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.domain.clock import Clock
from pipeline.domain.events import LlmToken, PipelineEvent
from pipeline.domain.ids import ThreadKey


class Woken:
    """One who waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._news = asyncio.Event()

    def wake(self) -> None:
        """There is news."""
        self._news.set()

    async def wait(self, seconds: float) -> None:
        """Return when there is news that this method has not reported yet, or after `seconds`."""
        try:
            async with self._clock.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()


class Wakes:
    """Everybody who waits, by thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[ThreadKey, set[Woken]] = {}
        self.closing = False
        """Whether everybody should leave."""

    @contextmanager
    def waiting(self, thread: ThreadKey) -> Iterator[Woken]:
        """Wait for news of `thread`, inside the block."""
        woken = Woken(self._clock)
        self._waiting.setdefault(thread, set()).add(woken)
        try:
            yield woken
        finally:
            others = self._waiting[thread]
            others.discard(woken)
            if not others:
                del self._waiting[thread]

    def wake(self, thread: ThreadKey) -> None:
        """Report news of `thread`."""
        for woken in self._waiting.get(thread, ()):
            woken.wake()

    def close(self) -> None:
        """Ask everybody to leave."""
        self.closing = True
        for thread in tuple(self._waiting):
            self.wake(thread)

    def sender_for(self, thread: ThreadKey) -> ThreadNews:
        """The receiver of the events of `thread`."""
        return ThreadNews(self, thread)


class ThreadNews:
    """The `EventSender` of one thread: what an event reports is read from the store."""

    def __init__(self, wakes: Wakes, thread: ThreadKey) -> None:
        self._wakes = wakes
        self._thread = thread

    async def send_event(self, event: PipelineEvent) -> None:
        """See `EventSender`."""
        if not isinstance(event, LlmToken):
            self._wakes.wake(self._thread)
