"""A microphone on a clock that does not move, the shipped fakes behind it, and all that comes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import ManualClock
from voice.endpointing.flush_policy import FlushSettings
from voice.endpointing.stream_buffer import Flushed, StreamBufferManager
from voice.errors import TranscriberBusy, VoiceError
from voice.streaming.commit import Drop
from voice.streaming.segmenter import FRAME_S
from voice.streaming.session import LiveListener
from voice.streaming.vad_port import EnergyDetector
from voice.transcriber import OnProgress, Recording
from voice.transcript import Transcript
from voice.transcription.scripted_transcriber import ScriptedAnswer, ScriptedTranscriber

Feed = Callable[[bytes], None]

VOICE = b"\x00\x20" * 512
_MURMUR = b"\x70\x01" * 512
"""As loud as the soft end of a word."""
_SILENCE = b"\x00\x00" * 512


class Scribe:
    """A scripted transcriber with a script for finals and one for partials, which takes its time."""

    def __init__(
        self,
        clock: ManualClock,
        finals: Iterable[ScriptedAnswer] = (),
        partials: Iterable[ScriptedAnswer] = (),
        *,
        takes_s: float = 0.2,
    ) -> None:
        self._clock = clock
        self._finals = ScriptedTranscriber(finals)
        self._partials = ScriptedTranscriber((*partials, *[TranscriberBusy()] * 100))
        self.takes_s = takes_s
        self.begun: list[tuple[float, Recording]] = []
        """When each recording came, on the monotonic clock."""
        self.cancelled: list[str] = []
        """The urgency of each that no one waited for."""

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        self.begun.append((self._clock.monotonic(), recording))
        script = self._partials if recording.urgency == "partial" else self._finals
        answer = await _answer(script, recording)
        done = False
        try:
            await self._clock.sleep(self.takes_s)
            done = True
        finally:
            if not done:
                self.cancelled.append(recording.urgency)
        if isinstance(answer, VoiceError):
            raise answer
        return answer

    def recordings(self, urgency: str) -> list[Recording]:
        return [recording for _, recording in self.begun if recording.urgency == urgency]

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def status(self) -> str:
        return "ready"


@dataclass(slots=True)
class Notes:
    """Receives notifications and records them."""

    events: list[str] = field(default_factory=list)
    """`started`, `ended`, and `dropped:` with the reason."""
    partials: list[tuple[str, int]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """Of everything that was dropped."""

    def started(self) -> None:
        self.events.append("started")

    def partial(self, text: str, stable_chars: int) -> None:
        self.partials.append((text, stable_chars))

    def ended(self) -> None:
        self.events.append("ended")

    def dropped(self, reason: Drop, words: str) -> None:
        self.events.append(f"dropped:{reason}")
        self.words.append(words)


@dataclass(slots=True, kw_only=True)
class Booth:
    """Somebody speaks here."""

    clock: ManualClock
    supervisor: Supervisor
    scribe: Scribe
    detector: EnergyDetector
    listener: LiveListener
    manager: StreamBufferManager
    notes: Notes = field(default_factory=Notes)
    flushed: list[tuple[float, Flushed]] = field(default_factory=list)
    """(monotonic time, what)."""
    voice_end: float = 0.0
    """When the last sound with a voice had been made."""

    async def speak(self, seconds: float) -> None:
        await sound(self.listener.feed, self.clock, VOICE, seconds)
        self.voice_end = self.clock.monotonic()

    async def murmur(self, seconds: float) -> None:
        await sound(self.listener.feed, self.clock, _MURMUR, seconds)

    async def pause(self, seconds: float) -> None:
        await sound(self.listener.feed, self.clock, _SILENCE, seconds)

    async def until_done(self, work: Coroutine[Any, Any, None]) -> None:
        """Turn the clock while `work` waits for it."""
        task = self.supervisor.spawn(work, name="work")
        while not task.done():
            await self.clock.advance(0.1)
        await task

    @property
    def texts(self) -> list[str]:
        return [flushed.text for _, flushed in self.flushed]


async def _answer(script: ScriptedTranscriber, recording: Recording) -> Transcript | VoiceError:
    try:
        return await script.transcribe(recording)
    except VoiceError as error:
        return error


async def speak(feed: Feed, clock: ManualClock, seconds: float) -> None:
    """A voice, as fast as the clock is turned."""
    await sound(feed, clock, VOICE, seconds)


async def pause(feed: Feed, clock: ManualClock, seconds: float) -> None:
    """Silence from an open microphone."""
    await sound(feed, clock, _SILENCE, seconds)


async def sound(feed: Feed, clock: ManualClock, frame: bytes, seconds: float) -> None:
    """Each frame arrives when it has been made."""
    for _ in range(round(seconds / FRAME_S)):
        await clock.advance(FRAME_S)
        feed(frame)


@asynccontextmanager
async def open_booth(
    *finals: ScriptedAnswer,
    partials: Iterable[ScriptedAnswer] = (),
    takes_s: float = 0.2,
    hands_free: bool = True,
    likely_language: str | None = None,
    flush: FlushSettings | None = None,
) -> AsyncIterator[Booth]:
    """A microphone with a real manager, and a scribe who hears `finals` one after the other."""
    clock, supervisor, detector, notes = ManualClock(), Supervisor(), EnergyDetector(), Notes()
    scribe = Scribe(clock, finals, partials, takes_s=takes_s)

    async def on_flush(one: Flushed) -> None:
        booth.listener.flushed(one.chunks)
        booth.flushed.append((clock.monotonic(), one))

    manager = StreamBufferManager(on_flush=on_flush, clock=clock, settings=flush)
    listener = LiveListener(
        transcriber=scribe,
        detector=detector,
        manager=manager,
        key="somebody",
        speaker="ann",
        events=notes,
        spawn=supervisor.spawn,
        clock=clock,
        hands_free=hands_free,
        likely_language=likely_language,
    )
    booth = Booth(
        clock=clock,
        supervisor=supervisor,
        scribe=scribe,
        detector=detector,
        listener=listener,
        manager=manager,
        notes=notes,
    )
    await listener.open()
    try:
        yield booth
    finally:
        await supervisor.close()
        await manager.close()
