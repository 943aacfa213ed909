"""The session of one open microphone: audio in, chunks of speech out, events on the way.

Segments are found by voice activity (`voice.streaming.segmenter`), transcribed during the silence after
them (`voice.streaming.partials`) and added to a `StreamBufferManager`, which forms messages. Not here:
messages, permissions and time limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import assert_never

from voice.clock import Clock
from voice.endpointing.stream_buffer import StreamBufferManager
from voice.errors import TranscriberUnavailable
from voice.streaming.audio_buffer import AudioBuffer
from voice.streaming.commit import LiveChunks, LiveSpeechListener
from voice.streaming.local_agreement import Agreed
from voice.streaming.partials import Final, LiveTranscription, Spawn
from voice.streaming.segmenter import (
    FRAME_S,
    Began,
    Cut,
    Decision,
    Ended,
    Paused,
    Resumed,
    Segmenter,
    SegmentRules,
    TooShort,
)
from voice.streaming.vad_port import FRAME_BYTES, ActivityDetector, ActivityStream
from voice.transcriber import Transcriber

_log = logging.getLogger(__name__)

_MOST_LOSSES = 3
"""After more losses than this in one stream, the stream itself is taken to be the cause."""
_HELD_BYTES = 10 * 32_000
"""Audio kept while another detector starts; beyond it, the oldest is dropped."""
_CATCH_UP_S = 1.0
"""Seconds. The last audio before `finish` is judged within a few milliseconds, or never."""

_BROKE_OFF = "Listening broke off. Please open the microphone again."


class LiveListener:
    """The session of one open microphone. Belongs to the event loop it is opened on.

    `key` is the manager's thread id, `speaker` the person whose turn it counts as in the queue. With
    `hands_free` a pause ends a message; without, only `finish` or the manager's maximum time does.
    """

    def __init__(
        self,
        *,
        transcriber: Transcriber,
        detector: ActivityDetector,
        manager: StreamBufferManager,
        key: str,
        speaker: str,
        events: LiveSpeechListener,
        spawn: Spawn,
        clock: Clock,
        hands_free: bool = True,
        language: str | None = None,
        likely_language: str | None = None,
        rules: SegmentRules | None = None,
    ) -> None:
        self._detector = detector
        self._events = events
        self._spawn = spawn
        self._clock = clock
        self._segmenter = Segmenter(rules)
        self._sound = AudioBuffer(frame_bytes=FRAME_BYTES)
        self._held = b""
        """Audio that no detector has judged yet."""
        self._transcription = LiveTranscription(
            transcriber=transcriber,
            clock=clock,
            spawn=spawn,
            speaker=speaker,
            language=language,
            likely_language=likely_language,
        )
        self._chunks = LiveChunks(
            manager=manager,
            key=key,
            events=events,
            spawn=spawn,
            hands_free=hands_free,
            is_speaking=lambda: self.is_speaking,
        )
        self._stream: ActivityStream | None = None
        self._losses = 0
        self._closed = False
        self._finishing = asyncio.Lock()
        self._judged_more = asyncio.Event()
        self._start = 0
        self._speculation: Final | None = None
        self._before: Final | None = None
        """The segment that the open one was cut from."""
        self._sound_at = self._voice_at = clock.monotonic()

    @property
    def silent_s(self) -> float:
        """Seconds since the user spoke."""
        return 0.0 if self.is_speaking else self._clock.monotonic() - self._voice_at

    @property
    def seconds_since_audio(self) -> float:
        """Seconds since any audio arrived."""
        return self._clock.monotonic() - self._sound_at

    @property
    def vad_failed(self) -> bool:
        """Whether the detector failed for good: no more speech is transcribed."""
        return self._losses > _MOST_LOSSES

    @property
    def is_speaking(self) -> bool:
        """Whether the user speaks or has just paused."""
        return self._segmenter.speaking > 0

    @property
    def is_gathering(self) -> bool:
        """Whether there are words that are not part of a message yet."""
        return self._chunks.is_gathering

    async def open(self) -> None:
        """Start the detector. Raises TranscriberUnavailable."""
        await self._attach()

    def feed(self, pcm: bytes) -> None:
        """Add audio: 16 kHz, mono, 16 bit little endian. Returns at once; excess audio is dropped."""
        if self._closed or self.vad_failed:
            return
        self._sound_at = self._clock.monotonic()
        if self._stream is None:
            excess = max(0, len(self._held) + len(pcm) - _HELD_BYTES)
            self._held = (self._held + pcm)[excess + excess % 2 :]
            return
        self._sound.add(pcm)  # first, because the detector may answer at once
        self._stream.feed(pcm)

    def sound_stopped(self) -> None:
        """End the open segment: no more audio arrives, so no silence can end it."""
        self._decide(self._segmenter.finish())

    async def finish(self) -> None:
        """Flush: when this returns, what was said is a message or was reported as `dropped`."""
        async with self._finishing:
            await self._catch_up()
            self._decide(self._segmenter.finish())
            await self._chunks.finish(self._clock.monotonic())

    async def close(self) -> None:
        """Call `finish`, then close the microphone."""
        if self._closed:
            return
        self._closed = True
        try:
            await self.finish()
        finally:
            self._transcription.stop_partial()
            if self._stream is not None:
                self._stream.close()

    def flushed(self, chunks: int) -> None:
        """The first `chunks` of the committed chunks became a message."""
        self._chunks.flushed(chunks)

    # ------------------------------------------------------------ from audio to segments

    async def _attach(self) -> None:
        offset = self._segmenter.frames
        stream = await self._detector.open(lambda first, found: self._judged(offset + first, found))
        stream.on_lost = self._lost
        self._stream = stream
        held, self._held = self._held, b""
        if held:
            self.feed(held)

    def _judged(self, first: int, probabilities: tuple[float, ...]) -> None:
        """Process the detector's next frames, with gaps where frames were dropped."""
        left_out = (0.0,) * (first - self._segmenter.frames)
        for probability in left_out + probabilities:
            self._decide(self._segmenter.feed(probability))
        self._sound.forget_before(self._segmenter.keep_from)
        self._judged_more.set()
        self._transcribe_partial()

    def _lost(self) -> None:
        """The detector failed: end the open segment, and open another detector for the rest."""
        self._stream = None
        self._losses += 1
        self._held = self._sound.take_back(self._segmenter.frames)
        self._decide(self._segmenter.finish())
        self._judged_more.set()
        if not self._closed:
            self._spawn(self._reattach(), name="live speech: another detector")

    async def _reattach(self) -> None:
        if self.vad_failed:
            self._events.dropped("unavailable", _BROKE_OFF)
            return
        try:
            await self._attach()
        except TranscriberUnavailable as error:
            self._losses = _MOST_LOSSES + 1
            _log.warning("live speech is heard no more: %s", error.for_operator)
            self._events.dropped("unavailable", str(error))
        if self._closed and self._stream is not None:
            self._stream.close()

    async def _catch_up(self) -> None:
        """Wait until all received audio is judged."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP_S):
                while self._stream is not None and self._segmenter.frames < self._sound.frames:
                    self._judged_more.clear()
                    await self._judged_more.wait()

    # ------------------------------------------------------------ from segments to words

    def _decide(self, decisions: tuple[Decision, ...]) -> None:
        for decision in decisions:
            self._act(decision)

    def _act(self, decision: Decision) -> None:
        match decision:
            case Began():
                self._begin(decision.start, before=None)
                self._chunks.begin()
                self._events.started()
            case Paused():
                self._speculation = self._final(decision.start, decision.end)
            case Resumed():
                self._forget_speculation()
            case Cut():
                final = self._final(decision.start, decision.end)
                self._over(final, voice_end=decision.end)
                self._begin(decision.end, before=final)
            case Ended():
                final = self._speculation or self._final(decision.start, decision.end)
                self._over(final, voice_end=decision.voice_end)
                self._events.ended()
            case TooShort():
                self._forget_speculation()
                self._over(None, voice_end=self._segmenter.frames)
                self._events.ended()
            case _:
                assert_never(decision)

    def _begin(self, start: int, *, before: Final | None) -> None:
        self._start, self._before, self._speculation = start, before, None
        self._transcription.begin()

    def _final(self, start: int, end: int) -> Final:
        return self._transcription.final(self._sound.between(start, end), after=self._before)

    def _forget_speculation(self) -> None:
        if self._speculation is not None:
            self._speculation.cancel()
            self._speculation = None

    def _over(self, final: Final | None, *, voice_end: int) -> None:
        """Commit the words of the ended segment after those before it."""
        now = self._clock.monotonic()
        self._voice_at = now
        self._chunks.add(final, spoken_at=now - (self._sound.frames - voice_end) * FRAME_S)

    def _transcribe_partial(self) -> None:
        number = self._segmenter.speaking
        if not number or self._segmenter.pausing or not self._transcription.is_due():
            return

        def show(agreed: Agreed) -> None:
            if number == self._segmenter.speaking:
                self._chunks.show(agreed)

        sound = self._sound.between(self._start, self._segmenter.frames)
        self._transcription.partial(sound, show, after=self._before)
