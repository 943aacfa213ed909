"""One open microphone as its channel sees it: utterances with numbers, and an end when nobody speaks.

Not here: hearing (`voice.streaming`), and messages (`gateway.speech.live_sessions`).
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
    """Implements `adapters.channel.LiveStream`, and is told what its listener hears."""

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
        self._still_s = seconds_since_audio
        self._on_started = on_started
        self._on_nothing = on_nothing
        """Called when what was said came to nothing, and no other words wait."""
        self._on_closed = on_closed
        self._listener: LiveListener | None = None
        self._watch: asyncio.Task[None] | None = None
        self._closing = asyncio.Lock()
        self._closed = False
        self._ended = ""
        """Why the gateway has closed it, in words."""
        self._last = 0
        """The highest number of an utterance."""
        self._current = 0
        """The utterance that is being spoken; 0 while there is none."""

    async def listen(self, listener: LiveListener, spawn: Spawn) -> None:
        """Begin. Raises TranscriberUnavailable, or MediaUnavailable where it was closed meanwhile."""
        await listener.open()
        if self._closed:
            await listener.close()
            raise MediaUnavailable(self._ended or _BROKE_OFF)
        self._listener = listener
        self._watch = spawn(self._look_after(listener), name="live speech: a microphone")

    def feed(self, pcm: bytes) -> None:
        """More sound. Raises MediaUnavailable, with words, when nobody listens here any more."""
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
        # Whoever closes second waits for the first: the last words are a message then.
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
        """Close it from the gateway's side; its speaker is told why."""
        if self._closed:
            await self.close()
            return
        self._ended = words
        await self.close()
        self.dropped("unavailable", words)

    async def _look_after(self, listener: LiveListener) -> None:
        """See when no sound or no speech comes any more: neither shows in what is fed."""
        while True:
            await self._clock.sleep(_LOOK_EVERY_S)
            if listener.seconds_since_audio >= self._still_s:
                listener.sound_stopped()
            if listener.silent_s >= self._idle_s:
                minutes = max(1, round(self._idle_s / 60))
                silence = f"Nobody has spoken for {minutes} min, so I have stopped listening."
                await self.end(f"{silence} Open the microphone again to go on.")
                return

    # ------------------------------------------------------------ what the desk knows

    def flushed(self, chunks: int) -> None:
        """So many of the oldest chunks are a message."""
        if self._listener is not None:
            self._listener.flushed(chunks)

    def final(self, message: InboundMessage) -> None:
        """The utterance is a message, durably."""
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
        """The utterance may not be a message."""
        self._on_event(SpeechDropped(utterance=self._over(), reason="refused", message=words))

    # ------------------------------------------------------------ what the listener tells

    def started(self) -> None:
        self._on_event(SpeechStarted(utterance=self._begun()))
        self._on_started()

    def partial(self, text: str, stable_chars: int) -> None:
        if not self._current and self._listener is not None and self._listener.is_speaking:
            # The words before it became a message while the voice went on: nobody interrupts anybody.
            self._on_event(SpeechStarted(utterance=self._begun()))
        self._on_event(SpeechPartial(utterance=self._begun(), text=text, stable_chars=stable_chars))

    def ended(self) -> None:
        if self._current:
            self._on_event(SpeechEnded(utterance=self._current))

    def dropped(self, reason: Drop, words: str) -> None:
        if self._listener is not None and self._listener.is_gathering:
            # The utterance lives on with its other words: what was lost gets a number of its own.
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
