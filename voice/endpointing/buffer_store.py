"""Persist speech buffers, so that they survive a restart. A failed write is logged and interrupts nothing.

Not the storage itself: the caller passes a `BufferStore`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from voice.clock import Clock
from voice.endpointing.speech_buffer import KeptBuffer
from voice.endpointing.thread_state import ThreadBuffers

_log = logging.getLogger(__name__)


class BufferStore(Protocol):
    """Storage for buffers. Bodies are plain JSON data, `at` is Unix time."""

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None: ...

    async def drop_buffer(self, key: str) -> None: ...

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]: ...


class BufferRepository:
    """Reads and writes buffers in a store, or does nothing without one. Keys are generations."""

    def __init__(self, store: BufferStore | None, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def keep(self, thread: ThreadBuffers) -> bool:
        """Write the buffers of `thread` that changed; True when all of them are stored."""
        if self._store is None:
            return False
        # One write at a time, of the newest state: a late write must not restore a dropped buffer.
        async with thread.storing:
            for one in thread.unstored():
                try:
                    body = one.to_body(self._clock)
                    await self._store.keep_buffer(one.buffer.generation, body, at=self._clock.now())
                except Exception as error:  # noqa: BLE001 - any failure of the store
                    _log.warning("speech could not be kept; a crash now would lose it: %s", error)
                    return False
                thread.note_stored(one)
        return True

    async def drop(self, thread: ThreadBuffers, generation: str) -> None:
        """Delete a buffer that was delivered."""
        if self._store is None:
            return
        async with thread.storing:
            thread.note_dropped(generation)
            try:
                await self._store.drop_buffer(generation)
            except Exception as error:  # noqa: BLE001 - any failure of the store
                _log.warning("a delivered speech buffer could not be deleted: %s", error)

    async def kept(self) -> tuple[KeptBuffer, ...]:
        """The buffers of an earlier process, each thread's in order. Raises what the store raises."""
        if self._store is None:
            return ()
        found = [one for _, body in await self._store.buffers() if (one := self._read(body)) is not None]
        return tuple(sorted(found, key=lambda one: (one.buffer.order, one.buffer.created_at)))

    def _read(self, body: Mapping[str, Any]) -> KeptBuffer | None:
        try:
            return KeptBuffer.from_body(body, self._clock)
        except ValueError as error:
            _log.warning("a kept speech buffer cannot be read and stays where it is: %s", error)
            return None
