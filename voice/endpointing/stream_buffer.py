"""`StreamBufferManager`: gathers speech chunks per thread until they are a message.

When they are is decided by voice.endpointing.flush_policy; here are the clock, the timers, what is kept and
who is told. Not here: sound, recognition, and what a message is.

A buffer lives once: it gathers under a generation of its own, is *sealed* when it is flushed, and gathers no
more. A sealed buffer is handed to `on_flush`, one after the other per thread, and again after a while where
that failed; chunks that come meanwhile open the next one. A timer belongs to one buffer and dies with it.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from voice.clock import Clock
from voice.endpointing.buffer_store import BufferRepository, BufferStore
from voice.endpointing.flush_policy import Flush, FlushSettings, Wait, decide
from voice.endpointing.speech_buffer import FlushReason, KeptBuffer, Numbering, SpeechBuffer
from voice.endpointing.thread_state import BufferState, ThreadBuffers

_log = logging.getLogger(__name__)

MAX_BUFFERS = 2_000
"""Threads that may gather at once; beyond, the oldest buffer is flushed as if its time were over."""
RETRY_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses before a buffer whose flush failed is tried again; the last one repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """A buffer that is a message now."""

    thread_id: str
    text: str
    reason: FlushReason
    generation: str
    """The same whenever this buffer is handed over again: what was received once is not new."""
    language: str
    """What its chunks were spoken in; empty where nobody said."""
    confidence: float
    """0 to 1, of its words; 1 where nobody said."""
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkResult:
    """What became of a chunk."""

    should_process: bool
    """The buffer was flushed with it."""
    buffered_content: str
    """What was flushed, or is gathered so far."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferStatus:
    """A thread's buffer, for whoever looks."""

    exists: bool
    content: str
    age_s: float
    """Seconds since its last words."""
    state: BufferState


OnFlush = Callable[[Flushed], Awaitable[None]]
"""Receives a buffer; returning means having it. Whatever it raises has it called again, later, with the same
generation. It must not wait for the manager to flush the same thread: that waits for it."""


class StreamBufferManager:
    """Speech of many threads. Thread ids are opaque; each is one stream of chunks.

    Chunks of a thread that carry sequence numbers count up by one, from 0; one that comes again is ignored,
    one that is missing holds the later ones back, for as long as a buffer may live. Whoever counts anew uses
    another thread id, and so does whoever goes on after a restart: numbers are kept only with a buffer.
    """

    def __init__(
        self,
        *,
        on_flush: OnFlush,
        clock: Clock,
        shelf: BufferStore | None = None,
        settings: FlushSettings | None = None,
    ) -> None:
        self._on_flush = on_flush
        self._clock = clock
        self._shelf = BufferRepository(shelf, clock)
        self._settings = settings or FlushSettings()
        self._lines: dict[str, ThreadBuffers] = {}
        self._gathering: dict[str, ThreadBuffers] = {}  # those with an open buffer, longest open first
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def add_speech_chunk(
        self,
        thread_id: str,
        chunk: str,
        is_complete: bool = False,  # noqa: FBT001, FBT002 - the seed's signature
        *,
        sequence: int | None = None,
        spoken_at: float | None = None,
        language: str = "",
        confidence: float = 1.0,
    ) -> ChunkResult:
        """Take what was heard; durable when it returns, and handed over where it says `should_process`.

        `spoken_at` is the monotonic time at which the words ended, where that is not now. A chunk without
        words still counts: its `sequence` has come, and `is_complete` holds for what was there before.
        Raises ValueError for a negative `sequence`, and RuntimeError after `close`.
        """
        if self._closed:
            raise RuntimeError("the speech buffers are closed; nothing is gathered any more")
        if sequence is not None and sequence < 0:
            raise ValueError(f"sequence numbers count from 0, and this one is {sequence}")
        line = self._line(thread_id)
        now = self._clock.monotonic()
        if sequence is not None:
            numbering = line.numbering.take(sequence)
            if numbering is None:
                return ChunkResult(should_process=False, buffered_content=line.content, reason=_AGAIN)
            line.numbering = numbering
        ended_at = now if spoken_at is None else min(spoken_at, now)
        self._put(line, chunk, sequence, ended_at, (language, confidence))
        if is_complete and line.buffer is not None:
            line.buffer = replace(line.buffer, complete=True)
        return await self._act(line)

    def speaking(self, thread_id: str, on: bool, *, at: float | None = None) -> None:  # noqa: FBT001 - on or off
        """Somebody began or ceased to speak; `at` is the monotonic time, where it is not now.

        While somebody speaks no pause is over. Leave it on until the words have been added: what is still
        being recognised belongs to the same message.
        """
        line = self._line(thread_id)
        line.speaking = on
        now = self._clock.monotonic()
        if line.buffer is not None:
            last = max(line.buffer.last_activity, now if at is None else min(at, now))
            line.buffer = replace(line.buffer, speaking=on, last_activity=last)
            self._arm(line)
        self._tidy(line)

    async def force_flush(self, thread_id: str) -> str | None:
        """Flush now, whatever is gathered; its text, or None where there is nothing. What could not be handed
        over earlier is tried again."""
        line = self._line(thread_id)
        content = None if line.buffer is None else line.buffer.content
        self._seal(line, "forced")
        await self._deliver(line, at_once=True)
        return content

    def buffer_status(self, thread_id: str) -> BufferStatus:
        """What is gathered, or waits to be handed over."""
        line = self._lines.get(thread_id)
        if line is None or not line.content:
            return BufferStatus(exists=False, content="", age_s=0.0, state="none")
        newest = line.buffer or line.sealed[-1].buffer
        age_s = max(0.0, self._clock.monotonic() - newest.last_activity)
        return BufferStatus(exists=True, content=line.content, age_s=age_s, state=line.state)

    async def restore(self) -> int:
        """Take up what an earlier process kept; how many buffers. What is due is flushed at once."""
        kept = await self._shelf.kept()
        for one in kept:
            self._take_up(one)
        for line in {one.thread_id: self._line(one.thread_id) for one in kept}.values():
            await self._deliver(line)
            await self._act(line)
        return len(kept)

    async def close(self) -> None:
        """Stop. What is kept waits for the next start; what cannot be kept is flushed."""
        self._closed = True
        for line in self._lines.values():
            line.stop_timer()
            line.stop_retry()
        try:
            # What is being handed over right now is let through.
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            for task in self._tasks:
                task.cancel()
        for line in tuple(self._lines.values()):
            await self._put_away(line)

    # ------------------------------------------------------------ gathering

    def _line(self, thread_id: str) -> ThreadBuffers:
        return self._lines.setdefault(thread_id, ThreadBuffers(thread_id))

    def _put(
        self, line: ThreadBuffers, text: str, sequence: int | None, ended_at: float, how: tuple[str, float]
    ) -> None:
        language, confidence = how
        buffer = line.buffer
        if text.strip():
            if buffer is None:
                self._make_room()
                buffer = SpeechBuffer(
                    generation=uuid.uuid4().hex,
                    created_at=ended_at,
                    last_activity=ended_at,
                    order=line.sealed[-1].buffer.order + 1 if line.sealed else 0,
                )
                self._gathering[line.thread_id] = line
            buffer = buffer.with_chunk(text, sequence=sequence, ended_at=ended_at, confidence=confidence)
        if buffer is not None:
            line.buffer = replace(
                buffer,
                gap=bool(line.numbering.beyond),
                language=language or buffer.language,
                speaking=line.speaking,
            )

    def _make_room(self) -> None:
        if len(self._gathering) >= MAX_BUFFERS:
            oldest = next(iter(self._gathering.values()))
            self._seal(oldest, "max_time")
            self._spawn(self._deliver(oldest), "make room")

    async def _act(self, line: ThreadBuffers) -> ChunkResult:
        """Do what the policy says about the line's buffer."""
        content = "" if line.buffer is None else line.buffer.content
        now = self._clock.monotonic()
        verdict = None if line.buffer is None else decide(line.buffer, now, self._settings)
        if isinstance(verdict, Flush):
            self._seal(line, verdict.reason)
            await self._deliver(line)
            reason = _FLUSHED[verdict.reason].format(max_s=self._settings.max_s)
            return ChunkResult(should_process=True, buffered_content=content, reason=reason)
        self._arm(line)
        await self._shelf.keep(line)
        self._tidy(line)
        reason = _CONTINUING if len(content) >= self._settings.min_chars else _TOO_SHORT
        return ChunkResult(
            should_process=False, buffered_content=content, reason=reason if content else _EMPTY
        )

    def _seal(self, line: ThreadBuffers, reason: FlushReason) -> None:
        """The open buffer gathers no more. What it still waited for opens another when it comes."""
        line.stop_timer()
        if line.buffer is not None:
            line.sealed.append(line.as_kept(line.buffer, reason))
            line.buffer = None
            line.numbering = line.numbering.give_up()
            self._gathering.pop(line.thread_id, None)

    def _tidy(self, line: ThreadBuffers) -> None:
        """Forget a line with nothing to remember, and the longest unused ones beyond a number."""
        if not line.is_idle:
            return
        if self._lines.pop(line.thread_id, None) is None or line.numbering == Numbering():
            return
        self._lines[line.thread_id] = line
        if len(self._lines) > 2 * MAX_BUFFERS:
            idle = next((key for key, one in self._lines.items() if one.is_idle), None)
            if idle is not None:
                del self._lines[idle]

    # ------------------------------------------------------------ timers

    def _arm(self, line: ThreadBuffers) -> None:
        line.stop_timer()
        if line.buffer is None or self._closed:
            return
        now = self._clock.monotonic()
        verdict = decide(line.buffer, now, self._settings)
        delay = verdict.until - now if isinstance(verdict, Wait) else 0.0
        line.timer = self._spawn(self._tick(line, delay), "timer")

    async def _tick(self, line: ThreadBuffers, delay: float) -> None:
        await self._clock.sleep(max(0.0, delay))
        # From here on it may be handing over, and the next chunk must not cancel it.
        line.timer = None
        if line.buffer is not None:
            await self._act(line)

    def _arm_retry(self, line: ThreadBuffers) -> None:
        if line.retry is None and not self._closed:
            delay = RETRY_S[min(max(1, line.failures), len(RETRY_S)) - 1]
            line.retry = self._spawn(self._again(line, delay), "retry")

    async def _again(self, line: ThreadBuffers, delay: float) -> None:
        await self._clock.sleep(delay)
        line.retry = None
        await self._deliver(line, at_once=True)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        # In its own context: a timer must not log under the ids of the chunk that set it.
        loop = asyncio.get_running_loop()
        task = loop.create_task(work, name=f"speech buffer: {name}", context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a speech buffer's task failed", exc_info=task.exception())

    # ------------------------------------------------------------ handing over

    async def _deliver(self, line: ThreadBuffers, *, at_once: bool = False) -> None:
        """Hand the sealed buffers over, in order; not before their time where that failed lately."""
        try:
            await self._shelf.keep(line)
            async with line.delivering:
                if at_once:
                    line.stop_retry()
                while line.sealed and line.retry is None:
                    if not await self._hand_over(line):
                        return
        finally:
            if line.sealed:  # also where whoever was to hand over gave up in the middle
                self._arm_retry(line)
        self._tidy(line)

    async def _hand_over(self, line: ThreadBuffers) -> bool:
        """Tell the receiver of the oldest sealed buffer; whether it took it."""
        # Kept as sealed before anybody hears of it: after a crash it must not gather under a generation that
        # was received.
        await self._shelf.keep(line)
        sealed = line.sealed[0]
        received = False
        try:
            await self._on_flush(_flushed(sealed))
            received = True
        except Exception as error:  # noqa: BLE001 - whatever the receiver raises, the words are kept
            _log.warning("speech could not be handed over; it is tried again: %s", error)
        finally:
            if not received:
                line.failures += 1
                self._arm_retry(line)
        if received:
            line.failures = 0
            line.sealed.remove(sealed)
            await self._shelf.drop(line, sealed.buffer.generation)
        return received

    # ------------------------------------------------------------ starting and stopping

    async def _put_away(self, line: ThreadBuffers) -> None:
        if await self._shelf.keep(line):
            return
        self._seal(line, "forced")
        await self._deliver(line, at_once=True)
        if line.sealed:
            _log.error("speech is lost: it could be neither handed over nor kept")

    def _take_up(self, kept: KeptBuffer) -> None:
        line = self._line(kept.thread_id)
        if any(kept.buffer.generation == one.buffer.generation for one in line.all()):
            return
        if kept.reason is None:
            # Where two gather, the older one was sealed, and the shelf failed to hear of it.
            self._seal(line, "max_time")
            line.buffer = kept.buffer
            self._gathering[line.thread_id] = line
        else:
            line.sealed.append(kept)
        line.numbering = kept.numbering
        line.kept[kept.buffer.generation] = kept


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


# The seed's words, where it has any.
_CONTINUING = "Continuing to buffer - user still speaking"
_TOO_SHORT = "Buffer too short for meaningful processing"
_EMPTY = "Nothing is buffered"
_AGAIN = "This chunk was buffered before"
_FLUSHED: Mapping[FlushReason, str] = {
    "complete": "Speech marked as complete",
    "max_time": "Maximum buffer time exceeded ({max_s:g}s)",
    "sentence": "Complete sentence and thought detected",
    "complete_thought": "Complete thought detected after a pause",
    "silence": "Extended silence detected",
}
