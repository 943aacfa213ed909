"""`ThreadBuffers`: the state that the stream buffer manager holds per thread. No rules."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from voice.endpointing.speech_buffer import FlushReason, KeptBuffer, Numbering, SpeechBuffer
from voice.text import joined

BufferState = Literal["none", "active", "speaking", "complete", "flushing"]


@dataclass(slots=True, eq=False)
class ThreadBuffers:
    """One thread's speech: the open buffer, the flushed ones, and the timers."""

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
    kept: dict[str, KeptBuffer] = field(default_factory=dict)
    """What is stored, by generation."""
    delivering: asyncio.Lock = field(default_factory=asyncio.Lock)
    storing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def all(self) -> list[KeptBuffer]:
        """What is not delivered yet, oldest first."""
        return [*self.sealed, *(() if self.buffer is None else (self.as_kept(self.buffer, None),))]

    def as_kept(self, buffer: SpeechBuffer, reason: FlushReason | None) -> KeptBuffer:
        return KeptBuffer(thread_id=self.thread_id, buffer=buffer, numbering=self.numbering, reason=reason)

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

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def stop_retry(self) -> None:
        if self.retry is not None:
            self.retry.cancel()
            self.retry = None
