"""Speech buffers on a shelf, where they outlive the process. A shelf that fails stops nobody's speech.

Not the shelf itself: whoever hosts the ears brings one.
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
    """Where buffers are kept. Bodies are plain JSON data, `at` is Unix time."""

    async def keep_buffer(self, key: str, body: Mapping[str, Any], *, at: float) -> None: ...

    async def drop_buffer(self, key: str) -> None: ...

    async def buffers(self) -> tuple[tuple[str, Mapping[str, Any]], ...]: ...


class BufferRepository:
    """A shelf, or none, as the manager uses it. Buffers are kept under their generation."""

    def __init__(self, shelf: BufferStore | None, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    async def keep(self, line: ThreadBuffers) -> bool:
        """Bring the shelf up to date; whether everything of `line` is on it."""
        if self._shelf is None:
            return False
        # One at a time and the newest each time: a write that is overtaken must not bring back what is gone.
        async with line.shelving:
            for one in line.all():
                if line.kept.get(one.buffer.generation) == one:
                    continue
                try:
                    body = one.to_body(self._clock)
                    await self._shelf.keep_buffer(one.buffer.generation, body, at=self._clock.now())
                except Exception as error:  # noqa: BLE001 - whatever the shelf raises
                    _log.warning("speech could not be kept; a crash now would lose it: %s", error)
                    return False
                line.kept[one.buffer.generation] = one
        return True

    async def drop(self, line: ThreadBuffers, generation: str) -> None:
        """Take off what was handed over."""
        if self._shelf is None:
            return
        async with line.shelving:
            line.kept.pop(generation, None)
            try:
                await self._shelf.drop_buffer(generation)
            except Exception as error:  # noqa: BLE001 - whatever the shelf raises
                _log.warning("speech that was handed over could not be taken off the shelf: %s", error)

    async def kept(self) -> tuple[KeptBuffer, ...]:
        """What an earlier process left, each thread's in its order. Raises what the shelf raises."""
        if self._shelf is None:
            return ()
        found = [one for _, body in await self._shelf.buffers() if (one := self._read(body)) is not None]
        return tuple(sorted(found, key=lambda one: (one.buffer.order, one.buffer.created_at)))

    def _read(self, body: Mapping[str, Any]) -> KeptBuffer | None:
        try:
            return KeptBuffer.from_body(body, self._clock)
        except ValueError as error:
            _log.warning("a kept speech buffer cannot be read and stays where it is: %s", error)
            return None
