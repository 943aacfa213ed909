"""Schedule speech segments on a pool of recogniser processes.

Not here: splitting recordings into segments (`voice.audio.decoder_client`), the order of the queue
(`voice.transcription.fair_queue`), one recogniser's process (`voice.transcription.recognizer_client`).

A request that takes too long ends its process and fails only its recording; a request whose process dies is
retried once, alone, in a fresh process. Repeated process failures delay the next start more and more.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from voice.audio.segments import SpeechSegment
from voice.errors import (
    NONSENSE,
    SHUTTING_DOWN,
    TranscriberBusy,
    TranscriberUnavailable,
    TranscriptionTimeout,
    VoiceError,
)
from voice.settings import TranscriptionSettings
from voice.transcriber import Waiting
from voice.transcription.fair_queue import Ahead, FairQueue, Speed, WaitingSegment
from voice.transcription.jobs import SegmentJob, TranscriptionJob, request_frame
from voice.transcription.protocol import TranscribedSegment, segments_from_wire
from voice.transcription.recognizer_client import Recogniser
from voice.workers.child import DIED, OnLine
from voice.workers.frames import BrokenFrame

_START_DEADLINE_S = 60.0
_MAX_TRIES = 2
_CHEAPER_TO_FINISH_S = 20.0
"""Seconds of speech. It takes one to two seconds to recognise, not much more than starting a process; and
live speech, which is often withdrawn, is shorter."""
_LONGEST_PAUSE_S = 30.0

_log = logging.getLogger(__name__)


_Batch = tuple[WaitingSegment[SegmentJob], ...]


@dataclass(slots=True, kw_only=True, eq=False)
class _Slot:
    """A recogniser with its present batch."""

    recogniser: Recogniser
    given: asyncio.Future[_Batch] | None = None
    """The next batch; awaited while the recogniser is idle."""
    batch: _Batch = ()
    unwanted: bool = False
    """Its process was killed because the batch was withdrawn."""

    @property
    def free(self) -> bool:
        return self.given is not None and not self.given.done()


class Pool:
    """Recognisers that share one fair queue. Belongs to the event loop it is first used on.

    `command` starts a worker process, and `on_line` gets what it writes to stderr.
    """

    def __init__(
        self,
        settings: TranscriptionSettings,
        command: Sequence[str],
        on_line: OnLine,
        *,
        start_deadline_s: float = _START_DEADLINE_S,
    ) -> None:
        self._settings = settings
        self._queue = FairQueue[SegmentJob](max_seconds=settings.queue_seconds)
        self._speed = Speed()
        self._slots = tuple(
            _Slot(recogniser=Recogniser(command, on_line, start_deadline_s=start_deadline_s))
            for _ in range(settings.workers or _workers_here())
        )
        self._jobs: set[TranscriptionJob] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures = 0
        """Processes lost since the last successful batch."""
        self._start_failure: TranscriberUnavailable | None = None
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the running processes."""
        return tuple(pid for slot in self._slots if (pid := slot.recogniser.pid) is not None)

    def admit(self, job: TranscriptionJob) -> None:
        """Accept a recording until `leave`. Raises TranscriberBusy or TranscriberUnavailable."""
        if self._closed:
            raise TranscriberUnavailable(SHUTTING_DOWN)
        if job.urgency == "partial":
            if self._idle_now() is None:
                raise TranscriberBusy
        else:
            live = job.urgency == "final"
            rivals = sum((other.urgency == "final") is live for other in self._jobs)
            if rivals >= self._settings.queue_limit + len(self._slots):
                raise TranscriberBusy
            if self._start_failure is not None and self._all_pause():
                raise self._start_failure
        self._jobs.add(job)

    def submit(self, job: TranscriptionJob, segment: SpeechSegment) -> asyncio.Future[TranscribedSegment]:
        """Queue a segment of an admitted recording; the future raises VoiceError on failure.

        Raises TranscriberBusy where too much speech waits, and for a `partial` that would have to wait.
        """
        if self._closed:
            raise TranscriberUnavailable(SHUTTING_DOWN)
        self._start_serving()
        result = asyncio.get_running_loop().create_future()
        request = SegmentJob(job=job, segment=segment, result=result)
        entry = WaitingSegment(
            recording=job,
            speaker=job.speaker,
            rank=request.rank,
            seconds=segment.seconds,
            payload=request,
        )
        if job.urgency == "partial":
            slot = self._idle_now()
            if slot is None:
                raise TranscriberBusy
            self._give(slot, (entry,))
        elif not self._queue.add(entry):
            raise TranscriberBusy
        job.requests.append(request)
        self._dispatch()
        return result

    def leave(self, job: TranscriptionJob) -> None:
        """Withdraw what still waits of a recording that is done or cancelled.

        A running batch is finished and its result dropped, if that costs no more than a fresh process.
        """
        self._jobs.discard(job)
        job.on_waiting = None
        self._queue.withdraw(job)
        for request in job.requests:
            request.result.cancel()
        for slot in self._slots:
            unwanted = slot.batch and all(entry.payload.result.cancelled() for entry in slot.batch)
            if unwanted and _seconds(slot.batch) > _CHEAPER_TO_FINISH_S:
                slot.unwanted = True
                slot.recogniser.kill()

    async def warm_up(self) -> None:
        """Start every recogniser. Raises TranscriberUnavailable or TranscriptionTimeout."""
        if self._closed:
            raise TranscriberUnavailable(SHUTTING_DOWN)
        self._start_serving()
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots:
                    group.create_task(slot.recogniser.warm_up())
        except ExceptionGroup as errors:
            error = errors.exceptions[0]
            if isinstance(error, TranscriberUnavailable):
                self._start_failure = error
            raise error from errors
        self._start_failure = None

    async def close(self) -> None:
        """Fail waiting and running requests; return when every process has ended."""
        self._closed = True
        for job in tuple(self._jobs):
            for request in job.requests:
                request.fail(TranscriberUnavailable(SHUTTING_DOWN))
        self._queue.drain()
        for task in self._tasks:
            task.cancel()
        for slot in self._slots:
            await slot.recogniser.close()
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def status(self) -> str:
        """See `Transcriber.status`."""
        if self._closed:
            return "closed"
        if self.pids:
            return "ready"
        if any(slot.recogniser.starting for slot in self._slots):
            return "loading"
        return self._start_failure.for_operator if self._start_failure is not None else "not started"

    # Dispatching.

    def _dispatch(self) -> None:
        """Give waiting requests to free recognisers, and notify the recordings that still wait."""
        while len(self._queue):
            free = [slot for slot in self._slots if slot.free]
            if not free:
                break
            slot = next((slot for slot in free if slot.recogniser.idle), free[0])
            self._give(slot, self._queue.take_batch(recognisers=len(self._slots)))
        self._notify_waiting()

    def _give(self, slot: _Slot, batch: _Batch) -> None:
        if slot.given is not None:
            slot.batch = batch
            slot.given.set_result(batch)
            for entry in batch:
                entry.payload.job.begun = True

    def _idle_now(self) -> _Slot | None:
        return next((slot for slot in self._slots if slot.free and slot.recogniser.idle), None)

    def _all_pause(self) -> bool:
        """Whether every recogniser is in its delay after failing to start."""
        pausing = bool(self._tasks) and _pause_s(self._failures) > 0
        return pausing and not any(slot.free or slot.batch for slot in self._slots)

    def _notify_waiting(self) -> None:
        if not any(not job.begun and job.on_waiting for job in self._jobs):
            return
        loop = asyncio.get_running_loop()
        at_work = {entry.recording for slot in self._slots for entry in slot.batch}
        seconds = sum(_seconds(slot.batch) for slot in self._slots)
        for recording, ahead in self._queue.ahead().items():
            if isinstance(recording, TranscriptionJob) and not recording.begun and recording.on_waiting:
                waiting = self._waiting(ahead, len(at_work), seconds)
                if recording.is_news(waiting, now=loop.time()):
                    # Called later: a callback must not run in the middle of dispatching.
                    loop.call_soon(recording.report, waiting)

    def _waiting(self, ahead: Ahead, at_work: int, seconds_at_work: float) -> Waiting:
        eta_s = self._speed.eta_s(ahead.seconds + seconds_at_work, workers=len(self._slots))
        return Waiting(ahead=ahead.recordings + at_work, eta_s=eta_s)

    # Transcribing.

    def _start_serving(self) -> None:
        if not self._tasks:
            for slot in self._slots:
                slot.given = asyncio.get_running_loop().create_future()
                self._spawn(self._serve(slot))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # A separate context: it outlives the message that started it.
        task = asyncio.create_task(  # noqa: TID251 - lives until close(), which cancels and awaits it
            work, context=contextvars.Context()
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, slot: _Slot) -> None:
        while True:
            if slot.given is None:
                if slot.recogniser.pid is None:
                    await asyncio.sleep(_pause_s(self._failures))
                slot.given = asyncio.get_running_loop().create_future()
                self._dispatch()
            batch = tuple(entry for entry in await slot.given if not entry.payload.result.done())
            try:
                if batch:
                    slot.batch = batch
                    await self._transcribe(slot, batch)
            except Exception:  # noqa: BLE001 - after any failure, the callers must not wait for ever
                _log.exception("a voice recogniser's place in the pool failed")
                for entry in batch:
                    entry.payload.fail(TranscriberUnavailable(NONSENSE))
            finally:
                slot.batch, slot.unwanted, slot.given = (), False, None
            if slot.recogniser.jobs >= self._settings.recycle_after:
                self._spawn(self._renew(slot.recogniser))

    async def _transcribe(self, slot: _Slot, batch: _Batch) -> None:
        """Transcribe a batch and settle each of its requests."""
        try:
            await slot.recogniser.start()
        except TranscriberUnavailable as error:
            self._could_not_start(batch, error)
            return
        self._start_failure = None
        loop = asyncio.get_running_loop()
        seconds, started = _seconds(batch), loop.time()
        deadline_s = max(self._settings.deadline_floor_s, seconds)
        try:
            answer = await slot.recogniser.ask(
                request_frame([entry.payload for entry in batch]), deadline_s=deadline_s
            )
            segments = segments_from_wire(answer.header, count=len(batch))
        except TimeoutError:
            self._lost(slot, batch, TranscriptionTimeout(), tries=_MAX_TRIES if len(batch) == 1 else 1)
        except BrokenFrame as error:
            _log.warning("the recogniser's answer makes no sense: %s", error)
            slot.recogniser.kill()
            self._lost(slot, batch, TranscriberUnavailable(NONSENSE))
        except VoiceError as error:
            self._lost(slot, batch, _reported(error, died=slot.recogniser.pid is None))
        else:
            self._failures = 0
            if batch[0].payload.job.urgency != "partial":
                self._speed.learn(wall_s=loop.time() - started, speech_s=seconds)
            for entry, segment in zip(batch, segments, strict=True):
                entry.payload.settle(segment)

    def _could_not_start(self, batch: _Batch, error: TranscriberUnavailable) -> None:
        """Fail the batch, and the whole queue where no recogniser runs."""
        self._failures += 1
        self._start_failure = error
        for entry in batch:
            entry.payload.fail(error)
        if not self.pids and not any(slot.recogniser.starting for slot in self._slots):
            for entry in self._queue.drain():
                entry.payload.fail(error)

    def _lost(self, slot: _Slot, batch: _Batch, error: VoiceError, *, tries: int = 1) -> None:
        """A batch failed: queue its requests again, each alone, while they have tries left."""
        if slot.unwanted:
            return
        self._failures += 1
        for entry in batch:
            request = entry.payload
            request.tries += tries
            if request.result.done():
                continue
            if request.tries < _MAX_TRIES and request.job.urgency != "partial":
                self._queue.put_back(entry)
            else:
                request.fail(error)
        self._dispatch()

    async def _renew(self, recogniser: Recogniser) -> None:
        try:
            await recogniser.renew()
        except VoiceError as error:
            _log.warning("no fresh voice recogniser, the old one serves on: %s", error.for_operator)
            recogniser.jobs = 0


def _reported(error: VoiceError, *, died: bool) -> TranscriberUnavailable:
    """The error for the callers of a failed request: in our words, not the process's."""
    if isinstance(error, TranscriberUnavailable) and (not died or error.detail):
        return error
    return TranscriberUnavailable(DIED if died else NONSENSE, detail=error.for_operator)


def _workers_here() -> int:
    """Two, or one on a single core: measured, two processes with one thread each are fastest."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(2, cores))


def _pause_s(failures: int) -> float:
    """Seconds before a recogniser starts a process, after `failures` lost ones in a row.

    The first two cost no delay: a recording that kills its process does so twice.
    """
    return min(_LONGEST_PAUSE_S, 2.0 ** (failures - 3)) if failures > 2 else 0.0


def _seconds(batch: _Batch) -> float:
    return sum(entry.seconds for entry in batch)
