"""The recognisers and what waits for them: pieces of recordings in, what was heard in them out.

Not here: cutting recordings into pieces (`voice.audio.decoder_client`), the order of the queue
(`voice.transcription.fair_queue`), one recogniser's process (`voice.transcription.recognizer_client`).

A job that takes too long ends its process and fails that recording alone; a job whose process dies is
tried once more, by itself, on a fresh one. Processes that keep dying are started slower and slower.
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
from voice.settings import VoiceSettings
from voice.transcriber import Waiting
from voice.transcription.fair_queue import Ahead, Entry, FairQueue, Speed
from voice.transcription.jobs import SegmentJob, TranscriptionJob, request_frame
from voice.transcription.protocol import TranscribedSegment, heard_from_wire
from voice.transcription.recognizer_client import Recogniser
from voice.workers.child import DIED, OnLine
from voice.workers.frames import BrokenFrame

_START_DEADLINE_S = 60.0
_MAX_TRIES = 2
_CHEAPER_TO_FINISH_S = 20.0
"""So much speech takes one to two seconds to recognise, not much more than a fresh process takes to start;
and live speech, which is often withdrawn, is shorter."""
_LONGEST_PAUSE_S = 30.0

_log = logging.getLogger(__name__)


_Batch = tuple[Entry[SegmentJob], ...]


@dataclass(slots=True, kw_only=True, eq=False)
class _Slot:
    """A recogniser with its place in the pool."""

    recogniser: Recogniser
    given: asyncio.Future[_Batch] | None = None
    """Waited on while there is nothing to do."""
    batch: _Batch = ()
    unwanted: bool = False
    """Its process was killed because nobody waits for the batch any more."""

    @property
    def free(self) -> bool:
        return self.given is not None and not self.given.done()


class Pool:
    """Belongs to the event loop it is first used on. `command` starts a worker process."""

    def __init__(
        self,
        settings: VoiceSettings,
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
        self._hearings: set[TranscriptionJob] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures = 0
        """Processes that were lost since a job was last done."""
        self._start_failure: TranscriberUnavailable | None = None
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """The living processes."""
        return tuple(pid for slot in self._slots if (pid := slot.recogniser.pid) is not None)

    def admit(self, hearing: TranscriptionJob) -> None:
        """Take in a recording, until `leave`. Raises TranscriberBusy, or TranscriberUnavailable."""
        if self._closed:
            raise TranscriberUnavailable(SHUTTING_DOWN)
        if hearing.urgency == "partial":
            if self._idle_now() is None:
                raise TranscriberBusy
        else:
            live = hearing.urgency == "final"
            rivals = sum((other.urgency == "final") is live for other in self._hearings)
            if rivals >= self._settings.queue_limit + len(self._slots):
                raise TranscriberBusy
            if self._start_failure is not None and self._all_pause():
                raise self._start_failure
        self._hearings.add(hearing)

    def submit(self, hearing: TranscriptionJob, piece: SpeechSegment) -> asyncio.Future[TranscribedSegment]:
        """Have a piece of an admitted recording heard; the future fails with a VoiceError.

        Raises TranscriberBusy where too much speech waits, and for a `partial` that would have to wait.
        """
        if self._closed:
            raise TranscriberUnavailable(SHUTTING_DOWN)
        self._start_serving()
        heard = asyncio.get_running_loop().create_future()
        request = SegmentJob(hearing=hearing, piece=piece, heard=heard)
        entry = Entry(
            recording=hearing,
            speaker=hearing.speaker,
            rank=request.rank,
            seconds=piece.seconds,
            payload=request,
        )
        if hearing.urgency == "partial":
            slot = self._idle_now()
            if slot is None:
                raise TranscriberBusy
            self._give(slot, (entry,))
        elif not self._queue.add(entry):
            raise TranscriberBusy
        hearing.requests.append(request)
        self._dispatch()
        return heard

    def leave(self, hearing: TranscriptionJob) -> None:
        """The recording is done or no longer wanted: what waits is withdrawn.

        A job under way is left to finish unheard while that costs no more than a fresh process.
        """
        self._hearings.discard(hearing)
        hearing.on_waiting = None
        self._queue.withdraw(hearing)
        for request in hearing.requests:
            request.heard.cancel()
        for slot in self._slots:
            unwanted = slot.batch and all(entry.payload.heard.cancelled() for entry in slot.batch)
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
        """Fail what waits and what is under way; return when no process is left."""
        self._closed = True
        for hearing in tuple(self._hearings):
            for request in hearing.requests:
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

    # Handing out.

    def _dispatch(self) -> None:
        """Give what waits to whoever is free, and tell those who still wait."""
        while len(self._queue):
            free = [slot for slot in self._slots if slot.free]
            if not free:
                break
            slot = next((slot for slot in free if slot.recogniser.idle), free[0])
            self._give(slot, self._queue.take_batch(recognisers=len(self._slots)))
        self._tell_those_who_wait()

    def _give(self, slot: _Slot, batch: _Batch) -> None:
        if slot.given is not None:
            slot.batch = batch
            slot.given.set_result(batch)
            for entry in batch:
                entry.payload.hearing.begun = True

    def _idle_now(self) -> _Slot | None:
        return next((slot for slot in self._slots if slot.free and slot.recogniser.idle), None)

    def _all_pause(self) -> bool:
        """Whether every recogniser sits out its pause after failing to start."""
        pausing = bool(self._tasks) and _pause_s(self._failures) > 0
        return pausing and not any(slot.free or slot.batch for slot in self._slots)

    def _tell_those_who_wait(self) -> None:
        if not any(not hearing.begun and hearing.on_waiting for hearing in self._hearings):
            return
        loop = asyncio.get_running_loop()
        at_work = {entry.recording for slot in self._slots for entry in slot.batch}
        seconds = sum(_seconds(slot.batch) for slot in self._slots)
        for recording, ahead in self._queue.ahead().items():
            if isinstance(recording, TranscriptionJob) and not recording.begun and recording.on_waiting:
                waiting = self._waiting(ahead, len(at_work), seconds)
                if recording.is_news(waiting, now=loop.time()):
                    # Not from here: what the listener does must not happen in the middle of handing out.
                    loop.call_soon(recording.tell, waiting)

    def _waiting(self, ahead: Ahead, at_work: int, seconds_at_work: float) -> Waiting:
        eta_s = self._speed.eta_s(ahead.seconds + seconds_at_work, workers=len(self._slots))
        return Waiting(ahead=ahead.recordings + at_work, eta_s=eta_s)

    # Hearing.

    def _start_serving(self) -> None:
        if not self._tasks:
            for slot in self._slots:
                slot.given = asyncio.get_running_loop().create_future()
                self._spawn(self._serve(slot))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # Its own context: it outlives the message that happened to start it.
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
            batch = tuple(entry for entry in await slot.given if not entry.payload.heard.done())
            try:
                if batch:
                    slot.batch = batch
                    await self._hear(slot, batch)
            except Exception:  # noqa: BLE001 - whatever it is, nobody may be left waiting for ever
                _log.exception("a voice recogniser's place in the pool failed")
                for entry in batch:
                    entry.payload.fail(TranscriberUnavailable(NONSENSE))
            finally:
                slot.batch, slot.unwanted, slot.given = (), False, None
            if slot.recogniser.jobs >= self._settings.recycle_after:
                self._spawn(self._renew(slot.recogniser))

    async def _hear(self, slot: _Slot, batch: _Batch) -> None:
        """Have a batch heard and settle its requests, one way or the other."""
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
            heard = heard_from_wire(answer.header, pieces=len(batch))
        except TimeoutError:
            self._lost(slot, batch, TranscriptionTimeout(), tries=_MAX_TRIES if len(batch) == 1 else 1)
        except BrokenFrame as error:
            _log.warning("the recogniser's answer makes no sense: %s", error)
            slot.recogniser.kill()
            self._lost(slot, batch, TranscriberUnavailable(NONSENSE))
        except VoiceError as error:
            self._lost(slot, batch, _told(error, died=slot.recogniser.pid is None))
        else:
            self._failures = 0
            if batch[0].payload.hearing.urgency != "partial":
                self._speed.learn(wall_s=loop.time() - started, speech_s=seconds)
            for entry, piece in zip(batch, heard, strict=True):
                entry.payload.settle(piece)

    def _could_not_start(self, batch: _Batch, error: TranscriberUnavailable) -> None:
        """Without any recogniser nobody has reason to wait."""
        self._failures += 1
        self._start_failure = error
        for entry in batch:
            entry.payload.fail(error)
        if not self.pids and not any(slot.recogniser.starting for slot in self._slots):
            for entry in self._queue.drain():
                entry.payload.fail(error)

    def _lost(self, slot: _Slot, batch: _Batch, error: VoiceError, *, tries: int = 1) -> None:
        """A job failed: its requests are tried again, each by itself, while they have tries left."""
        if slot.unwanted:
            return
        self._failures += 1
        for entry in batch:
            request = entry.payload
            request.tries += tries
            if request.heard.done():
                continue
            if request.tries < _MAX_TRIES and request.hearing.urgency != "partial":
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


def _told(error: VoiceError, *, died: bool) -> TranscriberUnavailable:
    """What whoever waits for a failed job is told: in our words, whatever the process said."""
    if isinstance(error, TranscriberUnavailable) and (not died or error.detail):
        return error
    return TranscriberUnavailable(DIED if died else NONSENSE, detail=error.for_operator)


def _workers_here() -> int:
    """Two, or one on a single core: measured, a thread each in two processes beats everything else."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(2, cores))


def _pause_s(failures: int) -> float:
    """How long a recogniser waits before it starts a process, after so many were lost in a row.

    The first two are free: a recording that kills its process does so twice.
    """
    return min(_LONGEST_PAUSE_S, 2.0 ** (failures - 3)) if failures > 2 else 0.0


def _seconds(batch: _Batch) -> float:
    return sum(entry.seconds for entry in batch)
