"""Errors between audio bytes and words. `str(error)` is written for the person who spoke; information for
the operator only (folders, settings, addresses, messages of libraries) is the error's `detail`.

VoiceError
├── AudioRefused            permanent: too_large, too_long, unknown_format, no_audio, damaged
├── NothingHeard            the file is valid, but contains no recognisable speech
└── RecogniserError         the recogniser failed, not the file; trying again may help
    ├── TranscriberUnavailable   the model is missing, or the worker could not start or died
    ├── TranscriptionTimeout     the deadline passed
    └── TranscriberBusy          the queue is full

VoiceError also has SpeakerUnavailable: an answer could not be read aloud. Its text is for the operator,
because the user has received the answer in writing.
"""

from __future__ import annotations

from typing import Literal

SHUTTING_DOWN = "The voice recogniser is shutting down. Please send the recording again later."
NOT_STARTING = "The voice recogniser did not start in time. Please try again later."
NONSENSE = "The voice recogniser failed on that recording. Please send it again."
NOT_WORKING = "Recordings cannot be heard here at the moment. Please type your message."
"""Used where the operator must fix something; the error's detail says what."""

_DETAIL_CHARS = 4_000

AudioRefusal = Literal["too_large", "too_long", "unknown_format", "no_audio", "damaged"]


class VoiceError(Exception):
    """The base class. `code` is for machines; `permanent` means that the same bytes will fail again.

    `detail` is for the log and the doctor, which redact it: one line of at most 4,000 characters.
    """

    def __init__(self, message: str, *, code: str, permanent: bool, detail: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.permanent = permanent
        self.detail = " ".join(detail[: 2 * _DETAIL_CHARS].split())[:_DETAIL_CHARS]

    @property
    def for_operator(self) -> str:
        """The detail where there is one, else the text."""
        return self.detail or str(self)


class AudioRefused(VoiceError):
    """The bytes are not accepted audio."""

    def __init__(self, code: AudioRefusal, message: str) -> None:
        super().__init__(message, code=code, permanent=True)


class NothingHeard(VoiceError):
    """The audio contains no recognisable speech."""

    def __init__(
        self, message: str = "I could not hear any words in that recording. Please record it again."
    ) -> None:
        super().__init__(message, code="nothing_heard", permanent=True)


class RecogniserError(VoiceError):
    """The recogniser failed; the audio may be fine."""


class TranscriberUnavailable(RecogniserError):
    """There is no working recogniser: model missing, worker not starting, worker died."""

    def __init__(self, message: str = NOT_WORKING, *, detail: str = "") -> None:
        super().__init__(message, code="transcriber_unavailable", permanent=False, detail=detail)


class TranscriptionTimeout(RecogniserError):
    """The recogniser did not finish within the deadline."""

    def __init__(
        self,
        message: str = "Listening to that recording took too long. Please send it again, or a shorter one.",
        *,
        detail: str = "",
    ) -> None:
        super().__init__(message, code="transcription_timeout", permanent=False, detail=detail)


class TranscriberBusy(RecogniserError):
    """Too many recordings are waiting."""

    def __init__(
        self,
        message: str = "Too many recordings are waiting to be heard. Please send yours again in a minute.",
        *,
        detail: str = "",
    ) -> None:
        super().__init__(message, code="transcriber_busy", permanent=False, detail=detail)


class SpeakerUnavailable(VoiceError):
    """No speech can be synthesised: no voice, no program, or a timeout."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="speaker_unavailable", permanent=False)
