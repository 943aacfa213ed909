"""The real transcriber: Whisper in one worker process, with a bounded queue and deadlines.

Not here: decoding and recognition (`voice.worker_process`), the process itself (`voice.child`).
A worker that is too slow, dies or is no longer wanted is killed by its pid; the next recording
gets a fresh one.
"""

from __future__ import annotations

import asyncio
import logging

from voice.child import Child, OnLine, command
from voice.errors import TranscriberBusy, TranscriberUnavailable, TranscriptionTimeout, VoiceError
from voice.settings import VoiceSettings
from voice.speech import Transcript
from voice.transcriber import OnProgress, Recording
from voice.wire import BrokenFrame, Frame, transcript_from_wire

_START_DEADLINE_S = 60.0
_CLOSED = "The voice recogniser is shutting down. Please send the recording again later."
_NOT_STARTING = "The voice recogniser did not start in time. Please try again later."
_NONSENSE = "The voice recogniser failed on that recording. Please send it again."

_log = logging.getLogger(__name__)


class WhisperTranscriber:
    """Implements `Transcriber`. The process starts with `warm_up` or with the first recording.

    Belongs to the event loop it is first used on. `on_line` gets what the worker writes to stderr.
    """

    def __init__(self, settings: VoiceSettings, *, on_line: OnLine | None = None) -> None:
        self._settings = settings
        self._on_line = on_line or _log_line
        self._turn = asyncio.Lock()
        self._admitted = 0
        self._child: Child | None = None
        self._dying: set[Child] = set()
        self._closed = False
        self._status = "not started"

    @property
    def worker_pid(self) -> int | None:
        """The living worker's process id; None where there is none."""
        return self._child.pid if self._child is not None and self._child.alive else None

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        if self._admitted > self._settings.queue_limit:
            raise TranscriberBusy
        self._admitted += 1
        try:
            async with self._turn:
                child = await self._ready_child()
                answer = await self._ask(
                    child,
                    Frame(
                        header={
                            "kind": "transcribe",
                            "language": recording.language or self._settings.language,
                        },
                        body=recording.data,
                    ),
                    deadline_s=self._settings.deadline_floor_s,
                )
                try:
                    return transcript_from_wire(answer.header)
                except BrokenFrame as error:
                    self._discard(child)
                    raise TranscriberUnavailable(_NONSENSE) from error
        finally:
            self._admitted -= 1

    async def warm_up(self) -> None:
        async with self._turn:
            child = await self._ready_child()
            await self._ask(child, Frame(header={"kind": "warm_up"}), deadline_s=_START_DEADLINE_S)

    async def close(self) -> None:
        self._closed = True
        self._discard(self._child)
        async with self._turn:
            pass  # whoever was at work or starting a worker has failed and cleaned up
        for child in tuple(self._dying):
            await child.ended

    def status(self) -> str:
        if self._closed:
            return "closed"
        if self._status == "ready" and self.worker_pid is None:
            return "not started"
        return self._status

    async def _ready_child(self) -> Child:
        """The living worker with its model loaded. Raises TranscriberUnavailable."""
        self._refuse_when_closed()
        if self._child is not None and self._child.alive:
            return self._child
        self._discard(self._child)
        self._status = "loading"
        child: Child | None = None
        try:
            async with asyncio.timeout(_START_DEADLINE_S):
                child = self._child = await Child.start(_command(self._settings), self._on_line)
                self._refuse_when_closed()
                await asyncio.shield(child.ready)
        except TimeoutError as error:
            self._failed(child, _NOT_STARTING)
            raise TranscriberUnavailable(_NOT_STARTING) from error
        except VoiceError as error:
            self._failed(child, str(error))
            raise
        except asyncio.CancelledError:
            self._failed(child, "not started")
            raise
        self._status = "ready"
        return child

    async def _ask(self, child: Child, request: Frame, *, deadline_s: float) -> Frame:
        """One request. Its deadline grows to the recording's length once that is known.

        Recognition cannot be interrupted from outside, so giving up means killing the worker.
        """
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(deadline_s) as deadline:

                def extend(frame: Frame) -> None:
                    header = frame.header
                    if header.get("kind") == "decoded" and not deadline.expired():
                        seconds = min(float(header["seconds"]), self._settings.max_seconds)
                        deadline.reschedule(started + max(deadline_s, seconds))

                return await child.ask(request, on_frame=extend)
        except TimeoutError as error:
            self._discard(child)
            raise TranscriptionTimeout from error
        except asyncio.CancelledError:
            self._discard(child)
            raise

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise TranscriberUnavailable(_CLOSED)

    def _failed(self, child: Child | None, status: str) -> None:
        self._discard(child)
        self._status = status

    def _discard(self, child: Child | None) -> None:
        """Kill a worker, and remember it until it is gone."""
        if child is None:
            return
        if child is self._child:
            self._child = None
        if not child.ended.done():
            self._dying.add(child)
            child.ended.add_done_callback(lambda _: self._dying.discard(child))
            child.kill()


def _command(settings: VoiceSettings) -> tuple[str, ...]:
    return command(
        "voice.worker_process",
        "--model-dir", str(settings.model_dir),
        "--beam-size", str(settings.beam_size),
        "--max-bytes", str(settings.max_bytes),
        "--max-seconds", str(settings.max_seconds),
        "--min-seconds", str(settings.min_seconds),
    )  # fmt: skip


def _log_line(line: str) -> None:
    _log.warning("voice worker: %s", line)
