"""One live audio stream as its channel sees it: numbered utterances, closed after too long without speech.

Not here: transcription (`voice.streaming`), and messages (`gateway.speech.live_sessions`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapters.channel import OnLive
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.live import (
    DropReason,
    SpeechDropped,
    SpeechEnded,
    SpeechFinal,
    SpeechPartial,
    SpeechStarted,
)
from pipeline.domain.messages import Author, InboundMessage, Speech
from voice.streaming.commit import Drop
from voice.streaming.partials import Spawn
from voice.streaming.session import LiveListener

_LOOK_EVERY_S = 1.0
_BROKE_OFF = "Listening broke off. Open the microphone again."


class LiveAudioStream:
    """Implements `adapters.channel.LiveStream` and receives the events of its `LiveListener`."""

    def __init__(
        self,
        *,
        author: Author,
        on_event: OnLive,
        clock: Clock,
        idle_s: float,
        seconds_since_audio: float,
        on_started: Callable[[], None],
        on_nothing: Callable[[], None],
        on_closed: Callable[[], None],
    ) -> None:
        self.author = author
        self._on_event = on_event
        self._clock = clock
        self._idle_s = idle_s
        self._max_audio_gap_s = seconds_since_audio
        self._on_started = on_started
        self._on_nothing = on_nothing
        """Called when an utterance gave no text and no other text waits."""
        self._on_closed = on_closed
        self._listener: LiveListener | None = None
        self._watch: asyncio.Task[None] | None = None
        self._closing = asyncio.Lock()
        self._closed = False
        self._ended = ""
        """Why the gateway closed the stream, as text for the person; empty if it did not."""
        self._last = 0
        """The highest utterance number."""
        self._current = 0
        """The number of the current utterance; 0 for none."""

    async def listen(self, listener: LiveListener, spawn: Spawn) -> None:
        """Start. Raises TranscriberUnavailable, or MediaUnavailable if the stream was closed meanwhile."""
        await listener.open()
        if self._closed:
            await listener.close()
            raise MediaUnavailable(self._ended or _BROKE_OFF)
        self._listener = listener
        self._watch = spawn(self._look_after(listener), name="live speech: a microphone")

    def feed(self, pcm: bytes) -> None:
        """Pass audio to the listener. Raises MediaUnavailable with a message if the stream has ended."""
        if self._ended:
            raise MediaUnavailable(self._ended)
        if self._listener is None or self._closed:
            return
        if self._listener.vad_failed:
            raise MediaUnavailable(_BROKE_OFF)
        self._listener.feed(pcm)

    async def finish(self) -> None:
        if self._listener is not None and not self._closed:
            await self._listener.finish()

    async def close(self) -> None:
        # A second caller waits for the first, after which the last words are a message.
        async with self._closing:
            if self._closed:
                return
            self._closed = True
            try:
                if self._watch is not None and self._watch is not asyncio.current_task():
                    self._watch.cancel()
                if self._listener is not None:
                    await self._listener.close()
            finally:
                self._on_closed()

    async def end(self, words: str) -> None:
        """Close the stream from the gateway's side and send the person the reason `words`."""
        if self._closed:
            await self.close()
            return
        self._ended = words
        await self.close()
        self.dropped("unavailable", words)

    async def _look_after(self, listener: LiveListener) -> None:
        """Poll for missing audio and for silence, which `feed` cannot detect."""
        while True:
            await self._clock.sleep(_LOOK_EVERY_S)
            if listener.seconds_since_audio >= self._max_audio_gap_s:
                listener.sound_stopped()
            if listener.silent_s >= self._idle_s:
                minutes = max(1, round(self._idle_s / 60))
                silence = f"No one has spoken for {minutes} min, so I have stopped listening."
                await self.end(f"{silence} Open the microphone again to continue.")
                return

    # ------------------------------------------------------------ called by LiveSpeechService

    def flushed(self, chunks: int) -> None:
        """The oldest `chunks` chunks became a message."""
        if self._listener is not None:
            self._listener.flushed(chunks)

    def final(self, message: InboundMessage) -> None:
        """The utterance became a message, which is stored."""
        speech = message.speech or Speech()
        self._on_event(
            SpeechFinal(
                utterance=self._over(),
                text=message.text,
                language=speech.language,
                confidence=speech.confidence,
                message_id=message.message_id,
            )
        )

    def refused(self, words: str) -> None:
        """The inbox refused the utterance; `words` is the reason for the person."""
        self._on_event(SpeechDropped(utterance=self._over(), reason="refused", message=words))

    # ------------------------------------------------------------ called by LiveListener

    def started(self) -> None:
        self._on_event(SpeechStarted(utterance=self._begun()))
        self._on_started()

    def partial(self, text: str, stable_chars: int) -> None:
        if not self._current and self._listener is not None and self._listener.is_speaking:
            # The earlier words became a message while the person kept speaking: this is no interruption.
            self._on_event(SpeechStarted(utterance=self._begun()))
        self._on_event(SpeechPartial(utterance=self._begun(), text=text, stable_chars=stable_chars))

    def ended(self) -> None:
        if self._current:
            self._on_event(SpeechEnded(utterance=self._current))

    def dropped(self, reason: Drop, words: str) -> None:
        if self._listener is not None and self._listener.is_gathering:
            # The utterance continues with its other text, so the lost part gets a separate number.
            self._last += 1
            number = self._last
        else:
            number = self._over()
            self._on_nothing()
        lost: DropReason = reason
        self._on_event(SpeechDropped(utterance=number, reason=lost, message=words))

    def _begun(self) -> int:
        if not self._current:
            self._last += 1
            self._current = self._last
        return self._current

    def _over(self) -> int:
        number = self._begun()
        self._current = 0
        return number
