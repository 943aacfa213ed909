"""Transcribe with Whisper: a sandboxed decoder and a pool of recognisers, each in separate processes.

A recording is split into speech segments while it is decoded, and its beginning is recognised meanwhile.
Not here: decoding (`voice.audio.decoder_client`), scheduling and processes (`voice.transcription.pool`).
"""

from __future__ import annotations

import asyncio
import logging

from voice.audio.decoder_client import Decoder
from voice.audio.segments import Decoded, SpeechSegment
from voice.settings import TranscriptionSettings
from voice.transcriber import OnProgress, Recording
from voice.transcript import Transcript
from voice.transcription.jobs import TranscriptionJob
from voice.transcription.pool import Pool
from voice.transcription.recording_parts import Parts
from voice.workers.child import OnLine, command

_BYTES_PER_SECOND = 32_000
_WINDOW_S = 30.0
"""Whisper's window: no segment may be longer."""
_PARTIAL_BEAM = 1
"""A partial is replaced within a second: half the work costs one more wrong word in a hundred."""

_log = logging.getLogger(__name__)


class WhisperTranscriber:
    """Implements `Transcriber`. Processes start with `warm_up` or with the first recordings.

    Belongs to the event loop it is first used on. `on_line` gets what the processes write to stderr.
    """

    def __init__(self, settings: TranscriptionSettings, *, on_line: OnLine | None = None) -> None:
        self._settings = settings
        self._decoder = Decoder(settings, on_line=on_line or _log_line)
        self._pool = Pool(settings, _command(settings), on_line or _log_line)

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the running processes, the recognisers first."""
        return (*self._pool.pids, *self._decoder.pids)

    @property
    def recogniser_pids(self) -> tuple[int, ...]:
        """The ids of the running recognisers."""
        return self._pool.pids

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        job = TranscriptionJob(
            speaker=recording.speaker,
            urgency=recording.urgency,
            beam=_PARTIAL_BEAM if recording.urgency == "partial" else self._settings.beam_size,
            language=recording.language or self._settings.language,
            likely=recording.likely_language,
            prompt=recording.prompt,
            on_waiting=on_progress,
        )
        parts = Parts(self._pool, job, on_progress)
        self._pool.admit(job)
        try:
            decoded = await self._decoded(recording, parts)
            return parts.joined(decoded, await parts.results())
        finally:
            parts.end()
            self._pool.leave(job)

    async def warm_up(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pool.warm_up())
                group.create_task(self._decoder.warm_up())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def close(self) -> None:
        await self._pool.close()
        await self._decoder.close()

    def status(self) -> str:
        return self._pool.status()

    async def _decoded(self, recording: Recording, parts: Parts) -> Decoded:
        """Decode the recording and submit every segment."""
        seconds = len(recording.data) / _BYTES_PER_SECOND
        live = recording.form == "pcm" and recording.urgency != "note"
        if not live or seconds > _WINDOW_S:
            decoded = await self._decoder.decode(recording.data, form=recording.form, on_segment=parts.take)
        else:
            # The live session that cut it out has found the speech in it already.
            spoken = seconds >= max(self._settings.min_seconds, 1 / _BYTES_PER_SECOND)
            if spoken:
                whole = recording.data[: len(recording.data) // 2 * 2]
                parts.take(SpeechSegment(index=0, pcm=whole, spans=((0.0, seconds),)))
            decoded = Decoded(seconds=seconds, truncated=False, container="pcm", segments=int(spoken))
        parts.complete()
        return decoded


def _command(settings: TranscriptionSettings) -> tuple[str, ...]:
    return command(
        "voice.transcription.recognizer_main",
        "--model-dir", str(settings.model_dir),
        "--engine", settings.engine,
        "--device", settings.device,
        "--compute-type", settings.compute_type,
    )  # fmt: skip


def _log_line(line: str) -> None:
    _log.warning("voice worker: %s", line)
