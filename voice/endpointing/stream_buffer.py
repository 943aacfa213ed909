"""`StreamBufferManager` gathers speech chunks per thread until they become a message.

voice.endpointing.flush_policy decides when; this module holds the clock, the timers, the storage and the
delivery. Not here: audio, recognition, and what a message is.

A buffer gathers chunks under its own generation, is *sealed* when it is flushed, and then takes no more.
Sealed buffers are passed to `on_flush` one at a time per thread, and again later where that failed; chunks
that arrive meanwhile open the next buffer. A timer belongs to one buffer and ends with it.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from voice.clock import Clock
from voice.endpointing.buffer_store import BufferRepository, BufferStore
from voice.endpointing.flush_policy import Flush, FlushSettings, Wait, decide
from voice.endpointing.speech_buffer import FlushReason, KeptBuffer, Numbering
from voice.endpointing.thread_state import BufferState, ThreadBuffers

_log = logging.getLogger(__name__)

MAX_BUFFERS = 2_000
"""The most threads with an open buffer; beyond it, the oldest buffer is flushed as if its time were over."""
RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a failed flush is tried again; the last one repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """A buffer that became a message."""

    thread_id: str
    text: str
    reason: FlushReason
    generation: str
    """The same on every delivery of this buffer, so that a receiver can ignore repeats."""
    language: str
    """The language of its chunks; empty where it is unknown."""
    confidence: float
    """0 to 1, of its words; 1 where it is unknown."""
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkResult:
    """The outcome of adding a chunk."""

    should_process: bool
    """Whether the buffer was flushed with this chunk."""
    buffered_content: str
    """The flushed text, or the text buffered so far."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferStatus:
    """The state of a thread's buffer."""

    exists: bool
    content: str
    age_s: float
    """Seconds since its last words."""
    state: BufferState


OnFlush = Callable[[Flushed], Awaitable[None]]
"""Receives a buffer and accepts it by returning. If it raises, it is called again later with the same
generation. It must not wait for a flush of the same thread: that flush waits for it."""


class StreamBufferManager:
    """Buffers the speech of many threads. Thread ids are opaque; each is one stream of chunks.

    Sequence numbers of a thread's chunks count up by one, from 0; a repeated one is ignored, and a missing
    one holds the later ones back for at most the maximum time. Numbers are stored only with a buffer: use
    another thread id to count from 0 again, also after a restart.
    """

    def __init__(
        self,
        *,
        on_flush: OnFlush,
        clock: Clock,
        store: BufferStore | None = None,
        settings: FlushSettings | None = None,
    ) -> None:
        self._on_flush = on_flush
        self._clock = clock
        self._store = BufferRepository(store, clock)
        self._settings = settings or FlushSettings()
        self._threads: dict[str, ThreadBuffers] = {}
        self._gathering: dict[str, ThreadBuffers] = {}  # those with an open buffer, longest open first
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def add_speech_chunk(
        self,
        thread_id: str,
        chunk: str,
        is_complete: bool = False,  # noqa: FBT001, FBT002 - the specified signature
        *,
        sequence: int | None = None,
        spoken_at: float | None = None,
        language: str = "",
        confidence: float = 1.0,
    ) -> ChunkResult:
        """Add transcribed speech; stored when this returns, and delivered where `should_process` is True.

        `spoken_at` is the monotonic time at which the words ended, if not now. A chunk without words still
        counts: its `sequence` has arrived, and `is_complete` applies to the chunks before it.
        Raises ValueError for a negative `sequence`, and RuntimeError after `close`.
        """
        if self._closed:
            raise RuntimeError("the speech buffers are closed; nothing is gathered any more")
        if sequence is not None and sequence < 0:
            raise ValueError(f"sequence numbers count from 0, and this one is {sequence}")
        thread = self._thread(thread_id)
        now = self._clock.monotonic()
        if sequence is not None and not thread.take_number(sequence):
            return ChunkResult(should_process=False, buffered_content=thread.content, reason=_REPEATED)
        ended_at = now if spoken_at is None else min(spoken_at, now)
        if chunk.strip() and thread.buffer is None:
            self._flush_oldest_if_full()
            thread.open(ended_at)
            self._gathering[thread.thread_id] = thread
        thread.put(chunk, sequence=sequence, ended_at=ended_at, language=language, confidence=confidence)
        if is_complete:
            thread.mark_complete()
        return await self._act(thread)

    def speaking(self, thread_id: str, on: bool, *, at: float | None = None) -> None:  # noqa: FBT001 - on/off
        """Set whether the user is speaking; `at` is the monotonic time, if not now.

        While the user speaks, no pause counts. Leave it on until the words have been added: speech that is
        still being transcribed belongs to the same message.
        """
        thread = self._thread(thread_id)
        now = self._clock.monotonic()
        thread.set_speaking(on=on, at=now if at is None else min(at, now))
        if thread.buffer is not None:
            self._arm(thread)
        self._tidy(thread)

    async def force_flush(self, thread_id: str) -> str | None:
        """Flush now; the text, or None where there is none. Earlier buffers whose delivery failed are tried
        again."""
        thread = self._thread(thread_id)
        content = None if thread.buffer is None else thread.buffer.content
        self._seal(thread, "forced")
        await self._deliver(thread, at_once=True)
        return content

    def buffer_status(self, thread_id: str) -> BufferStatus:
        """What is buffered or waits for delivery."""
        thread = self._threads.get(thread_id)
        if thread is None or not thread.content:
            return BufferStatus(exists=False, content="", age_s=0.0, state="none")
        newest = thread.buffer or thread.sealed[-1].buffer
        age_s = max(0.0, self._clock.monotonic() - newest.last_activity)
        return BufferStatus(exists=True, content=thread.content, age_s=age_s, state=thread.state)

    async def restore(self) -> int:
        """Load what an earlier process stored; the number of buffers. What is due is flushed at once."""
        kept = await self._store.kept()
        for one in kept:
            self._take_up(one)
        for thread in {one.thread_id: self._thread(one.thread_id) for one in kept}.values():
            await self._deliver(thread)
            await self._act(thread)
        return len(kept)

    async def close(self) -> None:
        """Stop. Stored buffers wait for the next start; buffers that cannot be stored are flushed."""
        self._closed = True
        for thread in self._threads.values():
            thread.stop_timer()
            thread.stop_retry()
        try:
            # Deliveries that are running may finish.
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            for task in self._tasks:
                task.cancel()
        for thread in tuple(self._threads.values()):
            await self._put_away(thread)

    # ------------------------------------------------------------ gathering

    def _thread(self, thread_id: str) -> ThreadBuffers:
        return self._threads.setdefault(thread_id, ThreadBuffers(thread_id))

    def _flush_oldest_if_full(self) -> None:
        if len(self._gathering) >= MAX_BUFFERS:
            oldest = next(iter(self._gathering.values()))
            self._seal(oldest, "max_time")
            self._spawn(self._deliver(oldest), "make room")

    async def _act(self, thread: ThreadBuffers) -> ChunkResult:
        """Apply the flush policy to the thread's buffer."""
        content = "" if thread.buffer is None else thread.buffer.content
        now = self._clock.monotonic()
        verdict = None if thread.buffer is None else decide(thread.buffer, now, self._settings)
        if isinstance(verdict, Flush):
            self._seal(thread, verdict.reason)
            await self._deliver(thread)
            reason = _FLUSHED[verdict.reason].format(max_s=self._settings.max_s)
            return ChunkResult(should_process=True, buffered_content=content, reason=reason)
        self._arm(thread)
        await self._store.keep(thread)
        self._tidy(thread)
        reason = _CONTINUING if len(content) >= self._settings.min_chars else _TOO_SHORT
        return ChunkResult(
            should_process=False, buffered_content=content, reason=reason if content else _EMPTY
        )

    def _seal(self, thread: ThreadBuffers, reason: FlushReason) -> None:
        """Close the thread's open buffer, if there is one."""
        thread.seal(reason)
        self._gathering.pop(thread.thread_id, None)

    def _tidy(self, thread: ThreadBuffers) -> None:
        """Forget an idle thread; those with a numbering only beyond a limit, the longest unused first."""
        if not thread.is_idle:
            return
        if self._threads.pop(thread.thread_id, None) is None or thread.numbering == Numbering():
            return
        self._threads[thread.thread_id] = thread
        if len(self._threads) > 2 * MAX_BUFFERS:
            idle = next((key for key, one in self._threads.items() if one.is_idle), None)
            if idle is not None:
                del self._threads[idle]

    # ------------------------------------------------------------ timers

    def _arm(self, thread: ThreadBuffers) -> None:
        thread.stop_timer()
        if thread.buffer is None or self._closed:
            return
        now = self._clock.monotonic()
        verdict = decide(thread.buffer, now, self._settings)
        delay = verdict.until - now if isinstance(verdict, Wait) else 0.0
        thread.timer = self._spawn(self._tick(thread, delay), "timer")

    async def _tick(self, thread: ThreadBuffers, delay: float) -> None:
        await self._clock.sleep(max(0.0, delay))
        # From here on it may deliver, and the next chunk must not cancel it.
        thread.timer = None
        if thread.buffer is not None:
            await self._act(thread)

    def _arm_retry(self, thread: ThreadBuffers) -> None:
        if thread.retry is None and not self._closed:
            delay = RETRY_S[min(max(1, thread.failures), len(RETRY_S)) - 1]
            thread.retry = self._spawn(self._again(thread, delay), "retry")

    async def _again(self, thread: ThreadBuffers, delay: float) -> None:
        await self._clock.sleep(delay)
        thread.retry = None
        await self._deliver(thread, at_once=True)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        # In a separate context: a timer must not log under the ids of the chunk that set it.
        loop = asyncio.get_running_loop()
        task = loop.create_task(work, name=f"speech buffer: {name}", context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a speech buffer's task failed", exc_info=task.exception())

    # ------------------------------------------------------------ delivery

    async def _deliver(self, thread: ThreadBuffers, *, at_once: bool = False) -> None:
        """Deliver the sealed buffers in order; after a failure, only when the retry is due or `at_once`."""
        try:
            await self._store.keep(thread)
            async with thread.delivering:
                if at_once:
                    thread.stop_retry()
                while thread.sealed and thread.retry is None:
                    if not await self._hand_over(thread):
                        return
        finally:
            if thread.sealed:  # also when the delivering task was cancelled
                self._arm_retry(thread)
        self._tidy(thread)

    async def _hand_over(self, thread: ThreadBuffers) -> bool:
        """Pass the oldest sealed buffer to `on_flush`; whether it was accepted."""
        # Stored as sealed before delivery: after a crash it must not gather more under a generation that was
        # received.
        await self._store.keep(thread)
        sealed = thread.sealed[0]
        received = False
        try:
            await self._on_flush(_flushed(sealed))
            received = True
        except Exception as error:  # noqa: BLE001 - any failure of the receiver: the words are kept
            _log.warning("speech could not be handed over; it is tried again: %s", error)
        finally:
            if not received:
                thread.note_failure()
                self._arm_retry(thread)
        if received:
            thread.note_delivered(sealed)
            await self._store.drop(thread, sealed.buffer.generation)
        return received

    # ------------------------------------------------------------ starting and stopping

    async def _put_away(self, thread: ThreadBuffers) -> None:
        if await self._store.keep(thread):
            return
        self._seal(thread, "forced")
        await self._deliver(thread, at_once=True)
        if thread.sealed:
            _log.error("speech is lost: it could be neither handed over nor kept")

    def _take_up(self, kept: KeptBuffer) -> None:
        thread = self._thread(kept.thread_id)
        before = thread.buffer
        thread.take_up(kept)
        if thread.buffer is not before:
            # It is the last one opened; the one before it, if any, was sealed.
            self._gathering.pop(thread.thread_id, None)
            self._gathering[thread.thread_id] = thread


def _flushed(sealed: KeptBuffer) -> Flushed:
    buffer = sealed.buffer
    return Flushed(
        thread_id=sealed.thread_id,
        text=buffer.content,
        reason=sealed.reason or "forced",
        generation=buffer.generation,
        language=buffer.language,
        confidence=buffer.confidence,
        chunks=len(buffer.chunks),
    )


# The specified wording, where there is one.
_CONTINUING = "Continuing to buffer - user still speaking"
_TOO_SHORT = "Buffer too short for meaningful processing"
_EMPTY = "Nothing is buffered"
_REPEATED = "This chunk was buffered before"
_FLUSHED: Mapping[FlushReason, str] = {
    "complete": "Speech marked as complete",
    "max_time": "Maximum buffer time exceeded ({max_s:g}s)",
    "sentence": "Complete sentence and thought detected",
    "complete_thought": "Complete thought detected after a pause",
    "silence": "Extended silence detected",
}
