"""The real transcriber: a decoder and a pool of recognisers, each in processes of their own.

A recording is cut into pieces of speech while it is decoded, and its beginning is recognised meanwhile.
Not here: decoding (`voice.decoder`), whose turn it is and what happens to processes (`voice.pool`).
"""

from __future__ import annotations

import asyncio
import logging

from voice.artefacts import spoken_text
from voice.child import OnLine, command
from voice.decoder import Decoder
from voice.errors import VoiceError
from voice.hearing import Hearing
from voice.pieces import Decoded, Piece
from voice.pool import Pool
from voice.settings import VoiceSettings
from voice.speech import Transcript
from voice.speech_buffer import joined
from voice.transcriber import Growing, OnProgress, Recording
from voice.wire import HeardPiece

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
        hearing = Hearing(
            speaker=recording.speaker,
            urgency=recording.urgency,
            beam=_PARTIAL_BEAM if recording.urgency == "partial" else self._settings.beam_size,
            language=recording.language or self._settings.language,
            likely=recording.likely_language,
            prompt=recording.prompt,
            on_waiting=on_progress,
        )
        parts = _Parts(self._pool, hearing, on_progress)
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

    async def _decoded(self, recording: Recording, parts: _Parts) -> Decoded:
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
                parts.take(Piece(index=0, pcm=whole, spans=((0.0, seconds),)))
            decoded = Decoded(seconds=seconds, truncated=False, container="pcm", pieces=int(spoken))
        parts.complete()
        return decoded


class _Parts:
    """The pieces of one recording, heard in any order, put together in their own."""

    def __init__(self, pool: Pool, hearing: Hearing, on_progress: OnProgress | None) -> None:
        self._pool = pool
        self._hearing = hearing
        self._on_progress = on_progress
        self._pieces: list[tuple[Piece, asyncio.Future[HeardPiece]]] = []
        self._refusal: VoiceError | None = None
        self._shown = ""
        self._complete = False

    def take(self, piece: Piece) -> None:
        """Hand a piece to the pool. A refusal is kept for `complete`: the decoder has no use for it."""
        if self._refusal is not None:
            return
        try:
            heard = self._pool.submit(self._hearing, piece)
        except VoiceError as error:
            self._refusal = error
            return
        self._pieces.append((piece, heard))
        heard.add_done_callback(self._show)

    def complete(self) -> None:
        """No piece follows. Raises the refusal of any of them."""
        self._complete = True
        if self._refusal is not None:
            raise self._refusal

    async def heard(self) -> list[HeardPiece]:
        """Every piece's words, in order. Raises what the first failed one raises."""
        return [await heard for _, heard in self._pieces]

    def end(self) -> None:
        """Nobody wants to know of progress any more."""
        self._on_progress = None

    def joined(self, decoded: Decoded, heard: list[HeardPiece]) -> Transcript:
        """The transcript of the whole recording."""
        language, probability = _spoken_language(heard)
        return Transcript(
            chunks=tuple(chunk for piece in heard for chunk in piece.chunks),
            language=language,
            language_probability=probability,
            audio_seconds=decoded.seconds,
            truncated=decoded.truncated,
        )

    def _show(self, _: asyncio.Future[HeardPiece]) -> None:
        """Tell the words of the beginning when there are more of them, and more are to come."""
        if self._on_progress is None:
            return
        texts, heard_s, count = [], 0.0, 0
        for piece, heard in self._pieces:
            if not heard.done() or heard.cancelled() or heard.exception() is not None:
                break
            texts += [text for chunk in heard.result().chunks if (text := spoken_text(chunk))]
            heard_s, count = piece.spans[-1][1], count + 1
        text = joined(texts)
        if text != self._shown and not (self._complete and count == len(self._pieces)):
            self._shown = text
            self._on_progress(Growing(text=text, heard_s=heard_s))


def _spoken_language(heard: list[HeardPiece]) -> tuple[str, float]:
    """The language that was spoken longest, and how sure that is; empty where nobody spoke."""
    seconds: dict[str, float] = {}
    surest: dict[str, float] = {}
    for piece in heard:
        if piece.chunks and piece.language:
            spoken_s = sum(chunk.end_s - chunk.start_s for chunk in piece.chunks)
            seconds[piece.language] = seconds.get(piece.language, 0.0) + spoken_s
            surest[piece.language] = max(surest.get(piece.language, 0.0), piece.language_probability)
    if not seconds:
        return "", 0.0
    language = max(seconds, key=lambda code: seconds[code])
    return language, surest[language]


def _command(settings: VoiceSettings) -> tuple[str, ...]:
    return command(
        "voice.worker_process",
        "--model-dir", str(settings.model_dir),
        "--engine", settings.engine,
        "--device", settings.device,
        "--compute-type", settings.compute_type,
    )  # fmt: skip


def _log_line(line: str) -> None:
    _log.warning("voice worker: %s", line)
