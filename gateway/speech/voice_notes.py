"""Download a voice note from its channel and transcribe it, for the pipeline.

The language that a person spoke last is stored as a hint for short notes. Nothing is stored about a note in a
group chat that may not be addressed to the bot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from gateway.runtime.metrics import Telemetry
from gateway.speech.speaker_language import AgentSpeechOf, likely_language, speaker_of, spoke
from gateway.storage.speech import SpeakerPreferenceStore
from pipeline.domain.errors import MediaUnavailable, TurnFailed
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage, MediaRef
from pipeline.domain.readings import FileUnreadable
from pipeline.runtime.ports import OnTranscription, PartialTranscription, Transcription, TranscriptionQueued
from voice.errors import VoiceError
from voice.transcriber import Growing, Recording, Waiting
from voice.transcript import Utterance
from voice.transcription.voice_note import VoiceIntake

_log = logging.getLogger(__name__)

_SURE_OF_LANGUAGE = 0.7
"""Minimum language probability for storing a note's language as the person's."""
_WORTH_SAYING_S = 3.0
"""Shorter waits are not reported: they are over before a person reads the report."""


class NoteDownloads(Protocol):
    """What fetches the voice notes of a channel."""

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """See `adapters.channel.ChannelAdapter.download`."""
        ...


class VoiceNoteTranscriber:
    """Implements the pipeline's `SpeechToText` port with the channels' downloads and a `VoiceIntake`.

    `forgetful` is an intake that stores no transcript, for notes that may not be addressed to the bot and
    for those off the record.
    """

    def __init__(
        self,
        *,
        channel_of: Callable[[ThreadKey], NoteDownloads | None],
        intake: VoiceIntake | None,
        forgetful: VoiceIntake | None,
        preferences: SpeakerPreferenceStore,
        speech_of: AgentSpeechOf,
        max_bytes: int,
        telemetry: Telemetry,
    ) -> None:
        self._channel_of = channel_of
        self._intake = intake
        self._forgetful = forgetful
        self._preferences = preferences
        self._speech_of = speech_of
        self._max_bytes = max_bytes
        self._telemetry = telemetry

    async def transcribe(self, message: InboundMessage, on_progress: OnTranscription) -> Transcription:
        """Transcribe `message.voice`. Raises TurnFailed with a message for the user."""
        unkept = message.if_named or message.mode == "otr"
        intake = self._forgetful if unkept else self._intake
        if intake is None:
            raise TurnFailed("voice_disabled", "Voice notes are switched off here. Please type your message.")
        try:
            with self._telemetry.hearing():
                recording = await self._recording(message)
                utterance = await _transcribe(intake, recording, on_progress)
        except VoiceError as error:
            _log_detail(error)
            raise TurnFailed(error.code, str(error), recoverable=not error.permanent) from error
        except MediaUnavailable as error:
            _log_detail(error)
            raise TurnFailed(error.code, str(error)) from error
        if not unkept:
            await self._remember(message, utterance, recording.likely_language)
        return Transcription(
            text=utterance.text,
            language=utterance.language,
            confidence=utterance.confidence,
            seconds=utterance.audio_seconds,
            cut_after_s=utterance.audio_seconds if utterance.truncated else None,
        )

    @property
    def enabled(self) -> bool:
        """Whether recordings are transcribed at all."""
        return self._intake is not None

    async def transcribe_file(self, message: InboundMessage, data: bytes) -> str:
        """The words in a recording that came as a file with `message`, of any speaker. Raises FileUnreadable
        with words for the person."""
        intake = self._forgetful if message.mode == "otr" else self._intake
        if intake is None:
            raise FileUnreadable("Recordings are not transcribed here.", reason="unsupported")
        speaker = speaker_of(message.thread, message.author.id)
        recording = Recording(
            data=data, speaker=f"{speaker.channel}:{speaker.account}:{speaker.user}", likely_language=None
        )
        try:
            with self._telemetry.hearing():
                return (await intake.transcribe(recording)).text
        except VoiceError as error:
            _log_detail(error)
            raise FileUnreadable(str(error), reason="unavailable") from error

    async def _recording(self, message: InboundMessage) -> Recording:
        data = await self._download(message)
        thread, author = message.thread, message.author.id
        speaker = speaker_of(thread, author)
        language = await likely_language(
            self._preferences, self._speech_of, thread, author, private=message.private
        )
        return Recording(
            data=data,
            likely_language=language or None,
            speaker=f"{speaker.channel}:{speaker.account}:{speaker.user}",
        )

    async def _remember(self, message: InboundMessage, utterance: Utterance, known: str | None) -> None:
        if utterance.language_probability >= _SURE_OF_LANGUAGE:
            speaker = speaker_of(message.thread, message.author.id)
            await spoke(self._preferences, speaker, utterance.language, before=known or "")

    async def _download(self, message: InboundMessage) -> bytes:
        ref = message.voice
        if ref is None:
            raise MediaUnavailable("The message has no voice note.")
        if ref.size is not None and ref.size > self._max_bytes:
            megabytes = self._max_bytes / 1_048_576
            raise MediaUnavailable(
                f"The voice note is larger than {megabytes:.0f} MB. Please send a shorter one."
            )
        adapter = self._channel_of(message.thread)
        if adapter is None:
            raise MediaUnavailable("The voice note's channel is not connected. Please send it again later.")
        return await adapter.download(ref, max_bytes=self._max_bytes)


def _log_detail(error: VoiceError | MediaUnavailable) -> None:
    """Log the error's detail, which the person does not see."""
    if error.detail:
        known = {"code": error.code, "reason": str(error), "detail": error.detail}
        _log.warning("a recording was not heard", extra=known)


async def _transcribe(intake: VoiceIntake, recording: Recording, on_progress: OnTranscription) -> Utterance:
    """Transcribe and pass on the progress. A queue decouples the recogniser from the slower `on_progress`."""
    updates: asyncio.Queue[Waiting | Growing | None] = asyncio.Queue()
    failed: VoiceError | None = None
    utterance: Utterance | None = None
    # The group would wrap the error, and callers distinguish the errors by type.
    async with asyncio.TaskGroup() as group:
        group.create_task(_report(updates, on_progress))
        try:
            utterance = await intake.transcribe(recording, on_progress=updates.put_nowait)
        except VoiceError as error:
            failed = error
        finally:
            updates.put_nowait(None)
    if utterance is None:
        raise failed or TurnFailed("internal", "The recording could not be heard. Please send it again.")
    return utterance


async def _report(updates: asyncio.Queue[Waiting | Growing | None], on_progress: OnTranscription) -> None:
    while (progress := await updates.get()) is not None:
        match progress:
            case Waiting(ahead=ahead, eta_s=eta_s):
                if eta_s >= _WORTH_SAYING_S:
                    await on_progress(TranscriptionQueued(ahead=ahead, eta_s=eta_s))
            case Growing(text=text):
                await on_progress(PartialTranscription(text=text))
