"""Build the voice parts of the gateway: transcriber, transcript cache, voice detection, speech synthesis.

A part of the composition root: `bootstrap` calls it, `lifecycle` starts and closes the parts.
"""

from __future__ import annotations

import logging
from functools import partial
from importlib.util import find_spec
from typing import Protocol

from gateway import __version__
from gateway.config import SecretRef, SecretUnavailable, Settings
from gateway.runtime.tasks import Supervisor
from gateway.speech.live_sessions import LiveSettings, LiveSpeechService
from gateway.speech.read_aloud import AnswerReader
from gateway.speech.voice_download import VoiceDownload
from gateway.storage.speech import SpeakerPreferenceStore
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from voice.audio.decoder_client import Decoder
from voice.endpointing.flush_policy import FlushSettings
from voice.errors import TranscriberUnavailable, VoiceError
from voice.settings import TranscriptionSettings
from voice.streaming.vad_client import VadClient
from voice.synthesis.piper_client import PiperSpeaker, voices_in
from voice.synthesis.synthesizer import SpeechSynthesizer
from voice.transcriber import Transcriber
from voice.transcription.cached_transcriber import CachedTranscriber
from voice.transcription.remote_transcriber import EndpointTranscriber
from voice.transcription.scripted_transcriber import ScriptedTranscriber
from voice.transcription.whisper_transcriber import WhisperTranscriber

_log = logging.getLogger(__name__)

SCRIPTED = "scripted:"
_NO_KEY = "The transcription service's key cannot be read now: check voice.api_key."


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """The voice parts. A part that is switched off is None."""

    transcriber: Transcriber | None
    listener: VadClient | None
    """Starts when the first microphone opens."""
    live: LiveSpeechService | None
    speaker: SpeechSynthesizer | None

    async def start(self) -> None:
        """Turn speech that an earlier process transcribed but did not enqueue into messages. Raises
        StorageError."""
        if self.live is not None:
            await self.live.start()

    async def warm_up(self) -> None:
        """Load the models, so that the first recording does not wait. A failure is logged now and with each
        recording, whose author gets an error."""
        try:
            if self.transcriber is not None:
                await self.transcriber.warm_up()
        except VoiceError as error:
            _log.warning("voices cannot be heard yet", extra={"reason": error.for_operator})

    async def stop_listening(self) -> None:
        """Close every microphone and enqueue its speech as messages. Call before the inbox closes. Raises
        nothing."""
        await _close(self.live)

    async def close(self) -> None:
        """Stop every voice process, also after a failed start. Raises nothing."""
        for part in (self.live, self.speaker, self.listener, self.transcriber):
            await _close(part)


class _Closing(Protocol):
    async def close(self) -> None: ...


async def _close(part: _Closing | None) -> None:
    # A failure here must not keep another process alive or the store open.
    try:
        if part is not None:
            await part.close()
    except Exception:  # noqa: BLE001 - no error may stop the shutdown
        _log.exception("a part of voice did not end cleanly")


def live_settings(settings: Settings) -> LiveSettings:
    """The settings of live speech."""
    live = settings.voice.live
    return LiveSettings(
        enabled=live.enabled,
        commit_s=live.commit_s,
        flush=FlushSettings(pause_s=live.pause_s, silence_s=live.silence_s),
        max_streams=live.max_streams,
    )


def build_transcriber(settings: Settings) -> Transcriber | None:
    """The configured transcriber, without a cache; None when voice is off."""
    wanted = settings.voice
    if not wanted.enabled:
        return None
    if wanted.transcriber.startswith(SCRIPTED):
        return ScriptedTranscriber.always(wanted.transcriber.removeprefix(SCRIPTED))
    if wanted.transcriber == "whisper":
        return WhisperTranscriber(voice_settings(settings))
    voice = voice_settings(settings)
    return EndpointTranscriber(
        wanted.transcriber,
        api_base=wanted.api_base,
        api_key=None if wanted.api_key is None else partial(_key_of, wanted.api_key),
        settings=voice,
        decoder=Decoder(voice),
    )


def _key_of(reference: SecretRef) -> str:
    """The current API key, read at every call, so that a rotated key works at once."""
    try:
        return reference.resolve()
    except SecretUnavailable as error:
        _log.error("the transcriber's key cannot be read", extra={"reason": str(error)})
        raise TranscriberUnavailable(detail=_NO_KEY) from error


def with_memory(
    transcriber: Transcriber | None, settings: Settings, book: SpeakerPreferenceStore, clock: Clock
) -> Transcriber | None:
    """`transcriber` with a cache of each person's transcripts, if the settings enable it."""
    wanted = settings.voice
    if transcriber is None or not wanted.cache or wanted.transcriber.startswith(SCRIPTED):
        return transcriber
    # Everything that can change the words of the same bytes, including this program's release.
    identity = (
        *(__version__, wanted.transcriber, wanted.api_base, settings.voice_model_path, wanted.engine),
        *(wanted.compute_type, wanted.language, wanted.max_seconds),
    )
    key = ":".join(map(str, identity))
    return CachedTranscriber(transcriber, book, clock, settings_key=key)


def build_speaker(settings: Settings) -> SpeechSynthesizer | None:
    """The speech synthesizer; None if reading aloud is switched off, or its parts are not installed and may
    not be fetched."""
    if not settings.voice.replies.enabled:
        return None
    folder = settings.voices_path
    if find_spec("piper") is None or not (any(folder.glob("*.onnx")) or fetches_voice(settings)):
        _log.info("answers are not read aloud: parlour[speech] or a voice is not installed")
        return None
    return PiperSpeaker(folder)


def fetches_voice(settings: Settings) -> bool:
    """Whether a missing voice is fetched when a person first asks for it."""
    return settings.voice.replies.fetch and settings.voice.replies.voices_path is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAloudParts:
    """What reads answers aloud. All are None where it is switched off or not installed."""

    speaker: SpeechSynthesizer | None
    reader: AnswerReader | None
    download: VoiceDownload | None
    """Fetches a missing voice; None where it may not be fetched."""


def build_read_aloud(
    settings: Settings, given: SpeechSynthesizer | None, supervisor: Supervisor
) -> ReadAloudParts:
    """The parts around the synthesizer `given`, or around the configured one."""
    speaker, download = given or build_speaker(settings), None
    if speaker is None:
        return ReadAloudParts(speaker=None, reader=None, download=None)
    if given is None and fetches_voice(settings):
        download = VoiceDownload(
            settings.models_path, lambda: bool(voices_in(settings.voices_path)), supervisor
        )
    return ReadAloudParts(speaker=speaker, reader=AnswerReader(speaker, download), download=download)


def voice_settings(settings: Settings) -> TranscriptionSettings:
    """The settings of the `voice` package."""
    wanted = settings.voice
    return TranscriptionSettings(
        model_dir=settings.voice_model_path,
        max_bytes=wanted.max_bytes,
        max_seconds=wanted.max_seconds,
        queue_limit=wanted.queue_limit,
        queue_seconds=wanted.queue_seconds,
        language=wanted.language,
        engine=wanted.engine,
        workers=wanted.workers,
        device=wanted.device,
        compute_type=wanted.compute_type,
    )
