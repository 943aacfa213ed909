"""`ThreadBuffers`: the speech of one thread, and every change to it. No clock, no timers, no delivery."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field, replace
from typing import Literal

from voice.endpointing.speech_buffer import FlushReason, KeptBuffer, Numbering, SpeechBuffer
from voice.text import joined

BufferState = Literal["none", "active", "speaking", "complete", "flushing"]


@dataclass(slots=True, eq=False)
class ThreadBuffers:
    """One thread's speech: the open buffer, the flushed ones, and the timers. Other modules read the fields
    and change them by the methods; only `timer` and `retry` are set from outside."""

    thread_id: str
    numbering: Numbering = field(default_factory=Numbering)
    speaking: bool = False
    buffer: SpeechBuffer | None = None
    sealed: list[KeptBuffer] = field(default_factory=list)
    """Flushed and not delivered yet, oldest first."""
    timer: asyncio.Task[None] | None = None
    """Runs for the open buffer; set only while it sleeps."""
    retry: asyncio.Task[None] | None = None
    failures: int = 0
    """Failed deliveries since the last one that was accepted."""
    stored: dict[str, KeptBuffer] = field(default_factory=dict)
    """What is stored, by generation."""
    delivering: asyncio.Lock = field(default_factory=asyncio.Lock)
    storing: asyncio.Lock = field(default_factory=asyncio.Lock)

    # ------------------------------------------------------------ reading

    def all(self) -> list[KeptBuffer]:
        """What is not delivered yet, oldest first."""
        return [*self.sealed, *(() if self.buffer is None else (self._as_kept(self.buffer, None),))]

    def unstored(self) -> list[KeptBuffer]:
        """What is not delivered yet and not stored in its present form, oldest first."""
        return [one for one in self.all() if self.stored.get(one.buffer.generation) != one]

    @property
    def content(self) -> str:
        return joined([one.buffer.content for one in self.all()])

    @property
    def is_idle(self) -> bool:
        return self.buffer is None and not self.sealed and not self.speaking

    @property
    def state(self) -> BufferState:
        if self.buffer is None:
            return "flushing" if self.sealed else "none"
        if self.buffer.complete:
            return "complete"
        return "speaking" if self.speaking else "active"

    # ------------------------------------------------------------ gathering

    def take_number(self, sequence: int) -> bool:
        """Record that the chunk with this number arrived; False where it had arrived before."""
        numbering = self.numbering.take(sequence)
        if numbering is None:
            return False
        self.numbering = numbering
        return True

    def open(self, at: float) -> None:
        """Begin a buffer whose first words ended at `at`."""
        self.buffer = SpeechBuffer(
            generation=uuid.uuid4().hex,
            created_at=at,
            last_activity=at,
            order=self.sealed[-1].buffer.order + 1 if self.sealed else 0,
        )

    def put(
        self, text: str, *, sequence: int | None, ended_at: float, language: str, confidence: float
    ) -> None:
        """Add a chunk to the open buffer, if there is one. A chunk without words may close a gap."""
        buffer = self.buffer
        if buffer is None:
            return
        if text.strip():
            buffer = buffer.with_chunk(text, sequence=sequence, ended_at=ended_at, confidence=confidence)
        self.buffer = replace(
            buffer,
            gap=bool(self.numbering.beyond),
            language=language or buffer.language,
            speaking=self.speaking,
        )

    def mark_complete(self) -> None:
        """Record that no more chunks follow those of the open buffer."""
        if self.buffer is not None:
            self.buffer = replace(self.buffer, complete=True)

    def set_speaking(self, *, on: bool, at: float) -> None:
        """Record whether the user is speaking at the monotonic time `at`."""
        self.speaking = on
        if self.buffer is not None:
            last = max(self.buffer.last_activity, at)
            self.buffer = replace(self.buffer, speaking=on, last_activity=last)

    def seal(self, reason: FlushReason) -> None:
        """Close the open buffer. Chunks that it still waited for open another one when they arrive."""
        self.stop_timer()
        if self.buffer is not None:
            self.sealed.append(self._as_kept(self.buffer, reason))
            self.buffer = None
            self.numbering = self.numbering.give_up()

    def take_up(self, kept: KeptBuffer) -> None:
        """Add a buffer that an earlier process stored, unless it is here already."""
        if any(kept.buffer.generation == one.buffer.generation for one in self.all()):
            return
        if kept.reason is None:
            # Of two open buffers the older one was sealed, and storing that failed.
            self.seal("max_time")
            self.buffer = kept.buffer
        else:
            self.sealed.append(kept)
        self.numbering = kept.numbering
        self.note_stored(kept)

    # ------------------------------------------------------------ delivery and storage

    def note_delivered(self, sealed: KeptBuffer) -> None:
        """Record that the receiver accepted the buffer."""
        self.failures = 0
        self.sealed.remove(sealed)

    def note_failure(self) -> None:
        """Record that the receiver did not accept the oldest sealed buffer."""
        self.failures += 1

    def note_stored(self, kept: KeptBuffer) -> None:
        """Record that the buffer is stored in this form."""
        self.stored[kept.buffer.generation] = kept

    def note_dropped(self, generation: str) -> None:
        """Record that the buffer is no longer stored."""
        self.stored.pop(generation, None)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def stop_retry(self) -> None:
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None

    def _as_kept(self, buffer: SpeechBuffer, reason: FlushReason | None) -> KeptBuffer:
        return KeptBuffer(thread_id=self.thread_id, buffer=buffer, numbering=self.numbering, reason=reason)
