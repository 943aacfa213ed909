"""The pipeline's ears: fetch a voice note from its channel and have it transcribed."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.channel import ChannelAdapter
from gateway.telemetry import Telemetry
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable, TurnFailed
from pipeline.domain.messages import InboundMessage
from pipeline.runtime.ports import Heard
from voice.errors import VoiceError
from voice.intake import VoiceIntake


class ChannelEars:
    """Implements the pipeline's `Ears` port with the channels' downloads and a `VoiceIntake`."""

    def __init__(
        self,
        *,
        channels: Mapping[tuple[str, str], ChannelAdapter],
        intake: VoiceIntake | None,
        max_bytes: int,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._channels = channels
        self._intake = intake
        self._max_bytes = max_bytes
        self._clock = clock
        self._telemetry = telemetry

    async def hear(self, message: InboundMessage) -> Heard:
        """The words of `message.voice`. Raises TurnFailed with words for the user."""
        if self._intake is None:
            raise TurnFailed("voice_disabled", "Voice notes are switched off here. Please type your message.")
        started = self._clock.monotonic()
        try:
            data = await self._download(message)
            utterance = await self._intake.hear(data)
        except VoiceError as error:
            raise TurnFailed(error.code, str(error), recoverable=not error.permanent) from error
        except MediaUnavailable as error:
            raise TurnFailed(error.code, str(error)) from error
        finally:
            self._telemetry.heard(self._clock.monotonic() - started)
        return Heard(text=utterance.text, language=utterance.language, confidence=utterance.confidence)

    async def _download(self, message: InboundMessage) -> bytes:
        ref = message.voice
        if ref is None:
            raise MediaUnavailable("The message has no voice note.")
        if ref.size is not None and ref.size > self._max_bytes:
            megabytes = self._max_bytes / 1_048_576
            raise MediaUnavailable(
                f"The voice note is larger than {megabytes:.0f} MB. Please send a shorter one."
            )
        adapter = self._channels.get((message.thread.channel, message.thread.account))
        if adapter is None:
            raise MediaUnavailable("The voice note's channel is not connected. Please send it again later.")
        return await adapter.download(ref, max_bytes=self._max_bytes)
