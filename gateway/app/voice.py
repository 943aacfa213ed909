"""Hearing and speaking as parts of the gateway: who recognises, remembers, listens and reads aloud.

A part of the composition root: `bootstrap` puts it together, `app` starts and ends it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Protocol

from gateway import __version__
from gateway.config import SecretRef, SecretUnavailable, Settings
from gateway.speech.live_sessions import LiveSettings, LiveSpeechService
from gateway.storage.speech import SpeakerPreferenceStore
from pipeline.domain.clock import Clock
from voice.audio.decoder_client import Decoder
from voice.endpointing.flush_policy import FlushSettings
from voice.errors import TranscriberUnavailable, VoiceError
from voice.settings import VoiceSettings
from voice.streaming.vad_client import VadClient
from voice.synthesis.piper_client import PiperSpeaker
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
    """What hears and speaks. A part that is switched off is None."""

    transcriber: Transcriber | None
    listener: VadClient | None
    """Starts with the first microphone."""
    desk: LiveSpeechService | None
    speaker: SpeechSynthesizer | None

    async def start(self) -> None:
        """What an earlier process heard and did not hand over becomes messages. Raises StorageError."""
        if self.desk is not None:
            await self.desk.start()

    async def warm_up(self) -> None:
        """Load the models, so that the first voice does not wait. A failure is logged, and again with each
        recording, whose speaker is told that it cannot be heard."""
        try:
            if self.transcriber is not None:
                await self.transcriber.warm_up()
        except VoiceError as error:
            _log.warning("voices cannot be heard yet", extra={"reason": error.for_operator})

    async def fall_silent(self) -> None:
        """Close every microphone; what was said becomes messages. Before the inbox closes. Raises nothing."""
        await _closed(self.desk)

    async def close(self) -> None:
        """Stop every process, and what a start that failed began. Raises nothing."""
        for part in (self.desk, self.speaker, self.listener, self.transcriber):
            await _closed(part)


class _Closing(Protocol):
    async def close(self) -> None: ...


async def _closed(part: _Closing | None) -> None:
    # What fails here must keep neither a process alive nor the store open.
    try:
        if part is not None:
            await part.close()
    except Exception:  # noqa: BLE001 - whatever it is, the gateway ends
        _log.exception("a part of voice did not end cleanly")


def live_settings(settings: Settings) -> LiveSettings:
    """How live speech is heard."""
    live = settings.voice.live
    return LiveSettings(
        enabled=live.enabled,
        commit_s=live.commit_s,
        flush=FlushSettings(pause_s=live.pause_s, silence_s=live.silence_s),
        max_streams=live.max_streams,
    )


def build_transcriber(settings: Settings) -> Transcriber | None:
    """The configured recogniser, without memory; None when voice is off."""
    wanted = settings.voice
    if not wanted.enabled:
        return None
    if wanted.transcriber.startswith(SCRIPTED):
        return ScriptedTranscriber.always(wanted.transcriber.removeprefix(SCRIPTED))
    if wanted.transcriber == "whisper":
        return WhisperTranscriber(voice_settings(settings))
    ears = voice_settings(settings)
    return EndpointTranscriber(
        wanted.transcriber,
        api_base=wanted.api_base,
        api_key=None if wanted.api_key is None else partial(_key_of, wanted.api_key),
        settings=ears,
        decoder=Decoder(ears),
    )


def _key_of(reference: SecretRef) -> str:
    """The key as it is now: a rotated one counts at once."""
    try:
        return reference.resolve()
    except SecretUnavailable as error:
        _log.error("the transcriber's key cannot be read", extra={"reason": str(error)})
        raise TranscriberUnavailable(detail=_NO_KEY) from error


def with_memory(
    transcriber: Transcriber | None, settings: Settings, book: SpeakerPreferenceStore, clock: Clock
) -> Transcriber | None:
    """`transcriber` with a memory of what each person's recordings said, where that is wanted."""
    wanted = settings.voice
    if transcriber is None or not wanted.cache or wanted.transcriber.startswith(SCRIPTED):
        return transcriber
    # Whatever gives the same bytes other words, this program's release included.
    identity = (
        *(__version__, wanted.transcriber, wanted.api_base, settings.voice_model_path, wanted.engine),
        *(wanted.compute_type, wanted.language, wanted.max_seconds),
    )
    key = ":".join(map(str, identity))
    return CachedTranscriber(transcriber, book, clock, settings_key=key)


def build_speaker(settings: Settings) -> SpeechSynthesizer | None:
    """Who reads answers aloud; None where that is switched off, or nothing is installed for it."""
    if not settings.voice.replies.enabled:
        return None
    folder = settings.voices_path
    if find_spec("piper") is None or not any(folder.glob("*.onnx")):
        _log.info("answers are not read aloud: parlour[speech] or a voice is not installed")
        return None
    return PiperSpeaker(folder)


def voice_settings(settings: Settings) -> VoiceSettings:
    """The ears' own settings."""
    wanted = settings.voice
    return VoiceSettings(
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
