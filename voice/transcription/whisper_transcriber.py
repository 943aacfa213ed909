"""The real transcriber: a decoder and a pool of recognisers, each in processes of their own.

A recording is cut into pieces of speech while it is decoded, and its beginning is recognised meanwhile. Not
here: decoding (`voice.audio.decoder_client`), whose turn it is and what happens to processes
(`voice.transcription.pool`).
"""

from __future__ import annotations

import asyncio
import logging

from voice.audio.decoder_client import Decoder
from voice.audio.segments import Decoded, SpeechSegment
from voice.settings import VoiceSettings
from voice.transcriber import OnProgress, Recording
from voice.transcript import Transcript
from voice.transcription.jobs import TranscriptionJob
from voice.transcription.pool import Pool
from voice.transcription.recording_parts import Parts
from voice.workers.child import OnLine, command

_BYTES_PER_SECOND = 32_000
_WINDOW_S = 30.0
"""Of Whisper: no piece may be longer."""
_PARTIAL_BEAM = 1
"""What is shown meanwhile is replaced in a second: half the work for a word in a hundred."""

_log = logging.getLogger(__name__)


class WhisperTranscriber:
    """Implements `Transcriber`. Processes start with `warm_up` or with the first recordings.

    Belongs to the event loop it is first used on. `on_line` gets what the processes write to stderr.
    """

    def __init__(self, settings: VoiceSettings, *, on_line: OnLine | None = None) -> None:
        self._settings = settings
        self._decoder = Decoder(settings, on_line=on_line or _log_line)
        self._pool = Pool(settings, _command(settings), on_line or _log_line)

    @property
    def pids(self) -> tuple[int, ...]:
        """Every living process, the recognisers first."""
        return (*self._pool.pids, *self._decoder.pids)

    @property
    def recogniser_pids(self) -> tuple[int, ...]:
        """The living recognisers."""
        return self._pool.pids

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        hearing = TranscriptionJob(
            speaker=recording.speaker,
            urgency=recording.urgency,
            beam=_PARTIAL_BEAM if recording.urgency == "partial" else self._settings.beam_size,
            language=recording.language or self._settings.language,
            likely=recording.likely_language,
            prompt=recording.prompt,
            on_waiting=on_progress,
        )
        parts = Parts(self._pool, hearing, on_progress)
        self._pool.admit(hearing)
        try:
            decoded = await self._decoded(recording, parts)
            return parts.joined(decoded, await parts.heard())
        finally:
            parts.end()
            self._pool.leave(hearing)

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
        """What there is to hear, all of it handed to the pool."""
        seconds = len(recording.data) / _BYTES_PER_SECOND
        live = recording.form == "pcm" and recording.urgency != "note"
        if not live or seconds > _WINDOW_S:
            decoded = await self._decoder.decode(recording.data, form=recording.form, on_piece=parts.take)
        else:
            # Whoever cut it out of live sound has looked for speech in it already.
            spoken = seconds >= max(self._settings.min_seconds, 1 / _BYTES_PER_SECOND)
            if spoken:
                whole = recording.data[: len(recording.data) // 2 * 2]
                parts.take(SpeechSegment(index=0, pcm=whole, spans=((0.0, seconds),)))
            decoded = Decoded(seconds=seconds, truncated=False, container="pcm", pieces=int(spoken))
        parts.complete()
        return decoded


def _command(settings: VoiceSettings) -> tuple[str, ...]:
    return command(
        "voice.transcription.recognizer_main",
        "--model-dir", str(settings.model_dir),
        "--engine", settings.engine,
        "--device", settings.device,
        "--compute-type", settings.compute_type,
    )  # fmt: skip


def _log_line(line: str) -> None:
    _log.warning("voice worker: %s", line)
