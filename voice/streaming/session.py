"""One open microphone: sound in, speech chunks of a message out, and what is heard meanwhile told at once.

Segments are found by their voice (`voice.streaming.segmenter`), heard while the silence behind them still
lasts (`voice.streaming.partials`) and given to a `StreamBufferManager`, which makes messages of them. Not
here: the message, its speaker's rights, and for how long somebody may listen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import assert_never

from voice.clock import Clock
from voice.endpointing.stream_buffer import StreamBufferManager
from voice.errors import TranscriberUnavailable
from voice.streaming.audio_buffer import LiveSound
from voice.streaming.commit import LiveChunks, LiveSpeechListener
from voice.streaming.local_agreement import Agreed
from voice.streaming.partials import Final, LiveHearing, Spawn
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
"""A detector that breaks down more often in one stream does so because of the stream."""
_HELD_BYTES = 10 * 32_000
"""What is said while another detector starts; of more the oldest is left out."""
_CATCH_UP_S = 1.0
"""The last sound before `finish` is judged within a few milliseconds, or never."""

_BROKE_OFF = "Listening broke off. Please open the microphone again."


class LiveListener:
    """The session of one open microphone. Belongs to the event loop it is opened on.

    `key` is the manager's thread id, `speaker` whose turn the recogniser counts it as. With `hands_free`
    pauses end a message; without, only `finish` does, or the manager's longest time.
    """

    def __init__(
        self,
        *,
        transcriber: Transcriber,
        listener: ActivityDetector,
        manager: StreamBufferManager,
        key: str,
        speaker: str,
        told: LiveSpeechListener,
        spawn: Spawn,
        clock: Clock,
        hands_free: bool = True,
        language: str | None = None,
        likely_language: str | None = None,
        rules: SegmentRules | None = None,
    ) -> None:
        self._listener = listener
        self._told = told
        self._spawn = spawn
        self._clock = clock
        self._segmenter = Segmenter(rules)
        self._sound = LiveSound(frame_bytes=FRAME_BYTES)
        self._held = b""
        """Sound that no detector has judged."""
        self._hearing = LiveHearing(
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
            told=told,
            spawn=spawn,
            hands_free=hands_free,
            is_speaking=lambda: self.is_speaking,
        )
        self._ears: ActivityStream | None = None
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
        """Seconds since somebody spoke."""
        return 0.0 if self.is_speaking else self._clock.monotonic() - self._voice_at

    @property
    def seconds_since_audio(self) -> float:
        """Seconds since any sound came."""
        return self._clock.monotonic() - self._sound_at

    @property
    def vad_failed(self) -> bool:
        """Nothing is heard any more, and nothing will be: the detector is gone."""
        return self._losses > _MOST_LOSSES

    @property
    def is_speaking(self) -> bool:
        """Whether somebody speaks, or has paused just now."""
        return self._segmenter.speaking > 0

    @property
    def is_gathering(self) -> bool:
        """Whether words were understood that are not a message yet."""
        return self._chunks.is_gathering

    async def open(self) -> None:
        """Begin to listen. Raises TranscriberUnavailable."""
        await self._attach()

    def feed(self, pcm: bytes) -> None:
        """More sound: 16 kHz, mono, 16 bit little endian. Returns at once; what is too much is dropped."""
        if self._closed or self.vad_failed:
            return
        self._sound_at = self._clock.monotonic()
        if self._ears is None:
            excess = max(0, len(self._held) + len(pcm) - _HELD_BYTES)
            self._held = (self._held + pcm)[excess + excess % 2 :]
            return
        self._sound.add(pcm)  # first, because the detector may answer at once
        self._ears.feed(pcm)

    def sound_stopped(self) -> None:
        """No sound comes any more, so no silence will end the open segment: it ends here."""
        self._decide(self._segmenter.finish())

    async def finish(self) -> None:
        """What was said so far is a message now, or its `dropped` was told."""
        async with self._finishing:
            await self._catch_up()
            self._decide(self._segmenter.finish())
            await self._chunks.finish(self._clock.monotonic())

    async def close(self) -> None:
        """As `finish`, and the microphone is closed."""
        if self._closed:
            return
        self._closed = True
        try:
            await self.finish()
        finally:
            self._hearing.stop_partial()
            if self._ears is not None:
                self._ears.close()

    def flushed(self, chunks: int) -> None:
        """The first `chunks` that were gathered are a message."""
        self._chunks.flushed(chunks)

    # ------------------------------------------------------------ from sound to segments

    async def _attach(self) -> None:
        offset = self._segmenter.frames
        ears = await self._listener.open(lambda first, found: self._judged(offset + first, found))
        ears.on_lost = self._lost
        self._ears = ears
        held, self._held = self._held, b""
        if held:
            self.feed(held)

    def _judged(self, first: int, probabilities: tuple[float, ...]) -> None:
        """The detector's next frames, of which some may have been left out."""
        left_out = (0.0,) * (first - self._segmenter.frames)
        for probability in left_out + probabilities:
            self._decide(self._segmenter.feed(probability))
        self._sound.forget_before(self._segmenter.keep_from)
        self._judged_more.set()
        self._hear_meanwhile()

    def _lost(self) -> None:
        """The detector broke down: what was said so far counts, and another one is asked for the rest."""
        self._ears = None
        self._losses += 1
        self._held = self._sound.take_back(self._segmenter.frames)
        self._decide(self._segmenter.finish())
        self._judged_more.set()
        if not self._closed:
            self._spawn(self._reattach(), name="live speech: another detector")

    async def _reattach(self) -> None:
        if self.vad_failed:
            self._told.dropped("unavailable", _BROKE_OFF)
            return
        try:
            await self._attach()
        except TranscriberUnavailable as error:
            self._losses = _MOST_LOSSES + 1
            _log.warning("live speech is heard no more: %s", error.for_operator)
            self._told.dropped("unavailable", str(error))
        if self._closed and self._ears is not None:
            self._ears.close()

    async def _catch_up(self) -> None:
        """Wait until all sound that came is judged."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP_S):
                while self._ears is not None and self._segmenter.frames < self._sound.frames:
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
                self._told.started()
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
                self._told.ended()
            case TooShort():
                self._forget_speculation()
                self._over(None, voice_end=self._segmenter.frames)
                self._told.ended()
            case _:
                assert_never(decision)

    def _begin(self, start: int, *, before: Final | None) -> None:
        self._start, self._before, self._speculation = start, before, None
        self._hearing.begin()

    def _final(self, start: int, end: int) -> Final:
        return self._hearing.final(self._sound.between(start, end), after=self._before)

    def _forget_speculation(self) -> None:
        if self._speculation is not None:
            self._speculation.cancel()
            self._speculation = None

    def _over(self, final: Final | None, *, voice_end: int) -> None:
        """The segment is over: its words follow those of the segments before."""
        now = self._clock.monotonic()
        self._voice_at = now
        self._chunks.add(final, spoken_at=now - (self._sound.frames - voice_end) * FRAME_S)

    def _hear_meanwhile(self) -> None:
        number = self._segmenter.speaking
        if not number or self._segmenter.pausing or not self._hearing.is_due():
            return

        def show(agreed: Agreed) -> None:
            if number == self._segmenter.speaking:
                self._chunks.show(agreed)

        sound = self._sound.between(self._start, self._segmenter.frames)
        self._hearing.partial(sound, show, after=self._before)
