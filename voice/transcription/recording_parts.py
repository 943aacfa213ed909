"""The pieces of one recording, handed to the recognisers as they come and put together in their order.

Not here: cutting (`voice.audio.segmentation`), whose turn it is (`voice.transcription.pool`).
"""

from __future__ import annotations

import asyncio

from voice.audio.segments import Decoded, SpeechSegment
from voice.errors import VoiceError
from voice.text import joined
from voice.transcriber import Growing, OnProgress
from voice.transcript import Transcript
from voice.transcription.hallucinations import spoken_text
from voice.transcription.jobs import TranscriptionJob
from voice.transcription.pool import Pool
from voice.transcription.protocol import TranscribedSegment

_SURE_OF_LANGUAGE = 0.8
"""Of a piece in another language than the rest of its recording: with less, that of the rest is taken."""


class Parts:
    """The pieces of one recording, heard in any order, put together in their own."""

    def __init__(self, pool: Pool, hearing: TranscriptionJob, on_progress: OnProgress | None) -> None:
        self._pool = pool
        self._hearing = hearing
        self._on_progress = on_progress
        self._pieces: list[tuple[SpeechSegment, asyncio.Future[TranscribedSegment]]] = []
        self._refusal: VoiceError | None = None
        self._shown = ""
        self._complete = False

    def take(self, piece: SpeechSegment) -> None:
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

    async def heard(self) -> list[TranscribedSegment]:
        """Every piece's words, in order. Raises what the first failed one raises.

        A piece may be a word or two, from which a language is guessed badly: one that seems to be in another
        language than the rest, and not surely, is heard once more in that of the rest.
        """
        heard = [await heard for _, heard in self._pieces]
        language, _ = spoken_language(heard)
        doubtful = [
            index
            for index, one in enumerate(heard)
            if one.chunks and one.language != language and one.language_probability < _SURE_OF_LANGUAGE
        ]
        if doubtful and self._hearing.language is None:
            self._hearing.language = language
            again = {index: self._pool.submit(self._hearing, self._pieces[index][0]) for index in doubtful}
            for index, one in again.items():
                heard[index] = await one
        return heard

    def end(self) -> None:
        """Nobody wants to know of progress any more."""
        self._on_progress = None

    def joined(self, decoded: Decoded, heard: list[TranscribedSegment]) -> Transcript:
        """The transcript of the whole recording."""
        language, probability = spoken_language(heard)
        return Transcript(
            chunks=tuple(chunk for piece in heard for chunk in piece.chunks),
            language=language,
            language_probability=probability,
            audio_seconds=decoded.seconds,
            truncated=decoded.truncated,
        )

    def _show(self, _: asyncio.Future[TranscribedSegment]) -> None:
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


def spoken_language(heard: list[TranscribedSegment]) -> tuple[str, float]:
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
