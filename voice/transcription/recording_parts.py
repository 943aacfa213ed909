"""Submit the segments of one recording to the pool and assemble the transcript in their order.

Not here: splitting (`voice.audio.segmentation`), the order of the queue (`voice.transcription.pool`).
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
"""A segment in another language than its recording, with less probability, is transcribed in the latter."""


class Parts:
    """The segments of one recording: transcribed in any order, assembled in their own."""

    def __init__(self, pool: Pool, job: TranscriptionJob, on_progress: OnProgress | None) -> None:
        self._pool = pool
        self._job = job
        self._on_progress = on_progress
        self._segments: list[tuple[SpeechSegment, asyncio.Future[TranscribedSegment]]] = []
        self._refusal: VoiceError | None = None
        self._shown = ""
        self._complete = False

    def take(self, segment: SpeechSegment) -> None:
        """Submit a segment. A refusal is raised by `complete` and not here, in the decoder's callback."""
        if self._refusal is not None:
            return
        try:
            result = self._pool.submit(self._job, segment)
        except VoiceError as error:
            self._refusal = error
            return
        self._segments.append((segment, result))
        result.add_done_callback(self._show)

    def complete(self) -> None:
        """End the recording's segments. Raises the refusal of any of them."""
        self._complete = True
        if self._refusal is not None:
            raise self._refusal

    async def results(self) -> list[TranscribedSegment]:
        """Every segment's words, in order. Raises what the first failed one raises.

        A language is detected badly from a word or two: a segment that seems to be in another language than
        the rest, with low probability, is transcribed again in the language of the rest.
        """
        results = [await result for _, result in self._segments]
        language, _ = spoken_language(results)
        doubtful = [
            index
            for index, one in enumerate(results)
            if one.chunks and one.language != language and one.language_probability < _SURE_OF_LANGUAGE
        ]
        if doubtful and self._job.language is None:
            self._job.language = language
            again = {index: self._pool.submit(self._job, self._segments[index][0]) for index in doubtful}
            for index, one in again.items():
                results[index] = await one
        return results

    def end(self) -> None:
        """Stop reporting progress."""
        self._on_progress = None

    def joined(self, decoded: Decoded, results: list[TranscribedSegment]) -> Transcript:
        """The transcript of the whole recording."""
        language, probability = spoken_language(results)
        return Transcript(
            chunks=tuple(chunk for segment in results for chunk in segment.chunks),
            language=language,
            language_probability=probability,
            audio_seconds=decoded.seconds,
            truncated=decoded.truncated,
        )

    def _show(self, _: asyncio.Future[TranscribedSegment]) -> None:
        """Report the words of the beginning, if there are new ones and the recording is not finished."""
        if self._on_progress is None:
            return
        texts, covered_s, count = [], 0.0, 0
        for segment, result in self._segments:
            if not result.done() or result.cancelled() or result.exception() is not None:
                break
            texts += [text for chunk in result.result().chunks if (text := spoken_text(chunk))]
            covered_s, count = segment.spans[-1][1], count + 1
        text = joined(texts)
        if text != self._shown and not (self._complete and count == len(self._segments)):
            self._shown = text
            self._on_progress(Growing(text=text, covered_s=covered_s))


def spoken_language(results: list[TranscribedSegment]) -> tuple[str, float]:
    """The language spoken longest and its probability; empty and 0 where there is no speech."""
    seconds: dict[str, float] = {}
    surest: dict[str, float] = {}
    for segment in results:
        if segment.chunks and segment.language:
            spoken_s = sum(chunk.end_s - chunk.start_s for chunk in segment.chunks)
            seconds[segment.language] = seconds.get(segment.language, 0.0) + spoken_s
            surest[segment.language] = max(surest.get(segment.language, 0.0), segment.language_probability)
    if not seconds:
        return "", 0.0
    language = max(seconds, key=lambda code: seconds[code])
    return language, surest[language]
