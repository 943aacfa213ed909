"""A manager of speech buffers, a receiver that can fail, and a buffers that can: what its tests use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from voice.endpointing.buffer_store import BufferStore
from voice.endpointing.flush_policy import FlushSettings
from voice.endpointing.stream_buffer import ChunkResult, Flushed, StreamBufferManager

THREAD = "web:main:ann"


class Receiver:
    """Notes what it is given and when; fails as often as requested; can be held up."""

    def __init__(self, clock: ManualClock) -> None:
        self.flushed: list[Flushed] = []
        self.times: list[float] = []
        self.calls = 0
        self.failures = 0
        self.arrived = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self._clock = clock

    async def __call__(self, flushed: Flushed) -> None:
        self.calls += 1
        self.arrived.set()
        await self.open.wait()
        if self.failures:
            self.failures -= 1
            raise StorageError("the inbox is full")
        self.flushed.append(flushed)
        self.times.append(round(self._clock.monotonic(), 6))

    @property
    def seen(self) -> list[tuple[float, str, str]]:
        """When, why and what, in order."""
        pairs = zip(self.times, self.flushed, strict=True)
        return [(at, one.reason, one.text) for at, one in pairs]


class FaultyBuffers:
    """The real buffers of a store in memory, with faults."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.broken = False
        self.drops_broken = False
        self.writes = 0

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None:
        await self._work()
        self.writes += 1
        await self.store.voices.keep_buffer(key, body, at=at)

    async def drop_buffer(self, key: str) -> None:
        await self._work(broken=self.drops_broken)
        await self.store.voices.drop_buffer(key)

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        await self._work()
        return await self.store.voices.buffers()

    async def _work(self, *, broken: bool = False) -> None:
        await self.store.open()
        if self.broken or broken:
            raise StorageError("the disk is full")
        # A store's answer takes a turn of the loop, and others come between.
        await asyncio.sleep(0)


class BufferHarness:
    """A manager with everything around it."""

    def __init__(
        self,
        *,
        clock: ManualClock | None = None,
        buffers: BufferStore | None = None,
        settings: FlushSettings | None = None,
        receiver: Receiver | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.receiver = receiver or Receiver(self.clock)
        self.manager = StreamBufferManager(
            on_flush=self.receiver, clock=self.clock, store=buffers, settings=settings
        )

    async def say(self, text: str, **how: Any) -> ChunkResult:
        """To the usual thread."""
        return await self.manager.add_speech_chunk(THREAD, text, **how)

    async def crash(self) -> None:
        await crash(self.manager)


async def crash(manager: StreamBufferManager) -> None:
    """As when its process is killed: everything stops, and no one is asked."""
    manager._closed = True  # no timer starts any more
    tasks = tuple(manager._tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def gathering(**parts: Any) -> AsyncIterator[BufferHarness]:
    """A harness that is closed at the end; no task may remain."""
    before = asyncio.all_tasks()
    harness = BufferHarness(**parts)
    try:
        yield harness
    finally:
        harness.receiver.open.set()
        await harness.manager.close()
        assert asyncio.all_tasks() <= before
