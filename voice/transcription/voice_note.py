"""Transcribe a voice note to an utterance. Failures are raised with text for the user."""

from __future__ import annotations

from dataclasses import replace

from voice.audio.limits import check_size
from voice.errors import NothingHeard
from voice.settings import TranscriptionSettings
from voice.text import joined
from voice.transcriber import Growing, OnProgress, Recording, Transcriber, Waiting
from voice.transcript import Utterance, mean_confidence
from voice.transcription.hallucinations import shown_text, spoken_text

_NOTHING_IN_THE_BEGINNING = (
    "I could not hear any words in the first {seconds:.0f} seconds of that recording, and I listen no "
    "further. Please send the part with the words."
)


class VoiceIntake:
    """Transcribes voice notes. Holds no state; one serves every conversation."""

    def __init__(self, transcriber: Transcriber, settings: TranscriptionSettings) -> None:
        self._transcriber = transcriber
        self._settings = settings

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Utterance:
        """What is said in `recording`; a language that the settings fix applies to every recording.
        Partial text is reported without Whisper's artefacts.

        Raises AudioRefused, NothingHeard, TranscriberUnavailable, TranscriptionTimeout or
        TranscriberBusy, each with text for the person who spoke.
        """
        check_size(len(recording.data), max_bytes=self._settings.max_bytes)
        known = replace(recording, language=recording.language or self._settings.language)
        shown = _without_artefacts(on_progress) if on_progress is not None else None
        transcript = await self._transcriber.transcribe(known, on_progress=shown)
        spoken = [(text, chunk) for chunk in transcript.chunks if (text := spoken_text(chunk))]
        if not spoken and transcript.truncated:
            raise NothingHeard(_NOTHING_IN_THE_BEGINNING.format(seconds=transcript.audio_seconds))
        if not spoken:
            raise NothingHeard
        return Utterance(
            text=joined([text for text, _ in spoken]),
            language=transcript.language,
            language_probability=transcript.language_probability,
            confidence=mean_confidence([chunk for _, chunk in spoken]),
            audio_seconds=transcript.audio_seconds,
            truncated=transcript.truncated,
        )


def _without_artefacts(on_progress: OnProgress) -> OnProgress:
    """Passes on only new text, without artefacts."""
    last = ""

    def show(progress: Waiting | Growing) -> None:
        nonlocal last
        if isinstance(progress, Growing):
            text = shown_text(progress.text)
            if text in ("", last):
                return
            last, progress = text, replace(progress, text=text)
        on_progress(progress)

    return show
