"""A sentence spoken live, in real time: from the end of the voice to the message."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bench.report import median
from bench.voice_measure import Contest
from pipeline.domain.clock import SystemClock
from tests.voice.clips import wav
from tests.voice.sounds import quiet
from voice.endpointing.flush_policy import FlushSettings
from voice.endpointing.stream_buffer import Flushed, StreamBufferManager
from voice.settings import TranscriptionSettings
from voice.streaming.commit import Drop
from voice.streaming.session import LiveListener
from voice.streaming.vad_client import VadClient
from voice.transcriber import Transcriber

_CLOCK = SystemClock()
_CHUNK_S = 0.04
_CHUNK_BYTES = int(_CHUNK_S * 32_000)
_BEFORE_S, _AFTER_S = 0.5, 8.0
_PATIENCE_S = 30.0
_KEY = "bench"

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finals:
    """Seconds from the end of the voice to the message; one entry a round."""

    ours: Sequence[float]
    fixed_pause: Sequence[float]
    """A fixed pause, and then the bare recogniser's time for the sentence."""
    text: str
    """What ours made of it."""
    reason: str
    """Why it became a message, in the buffer's words."""
    partials: float
    """How often words were shown before: the median."""

    @property
    def ours_s(self) -> float:
        """Median."""
        return median(self.ours)

    @property
    def fixed_pause_s(self) -> float:
        """Median."""
        return median(self.fixed_pause)

    @property
    def ratio(self) -> float:
        """Median of the rounds' ratios."""
        return median([here / there for here, there in zip(self.ours, self.fixed_pause, strict=True)])


async def finals(
    ours: Transcriber, contest: Contest, sentence: bytes, *, settings: TranscriptionSettings, rounds: int
) -> Finals:
    """Speak `sentence` (16 kHz samples, the voice up to the end) `rounds` times to both sides."""
    listener = VadClient(settings)
    try:
        await listener.warm_up()
        messages: list[_Message] = []
        fixed_pause: list[float] = []
        for _ in range(rounds):
            fixed_pause.append(FlushSettings().pause_s + (await contest.raw(wav(sentence))).wall_s)
            messages.append(await _spoken(ours, listener, sentence))
    finally:
        await listener.close()
    return Finals(
        ours=[message.after_s for message in messages],
        fixed_pause=fixed_pause,
        text=messages[-1].text,
        reason=messages[-1].reason,
        partials=median([message.partials for message in messages]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    after_s: float
    """Since the last voice."""
    text: str
    reason: str
    partials: int


class _Screen:
    """Records the partial transcripts that a speaker would see."""

    def __init__(self) -> None:
        self.partials: list[str] = []

    def started(self) -> None:
        return

    def partial(self, text: str, stable_chars: int) -> None:
        self.partials.append(f"{text[:stable_chars]}|{text[stable_chars:]}")

    def ended(self) -> None:
        return

    def dropped(self, reason: Drop, words: str) -> None:
        raise RuntimeError(f"the live sentence was dropped: {reason} {words}")


async def _spoken(ours: Transcriber, listener: VadClient, sentence: bytes) -> _Message:
    """Speak once."""
    flushed: asyncio.Future[tuple[float, Flushed]] = asyncio.get_running_loop().create_future()

    async def on_flush(message: Flushed) -> None:
        if not flushed.done():
            flushed.set_result((_CLOCK.monotonic(), message))

    screen = _Screen()
    manager = StreamBufferManager(on_flush=on_flush, clock=_CLOCK)
    async with asyncio.TaskGroup() as group, asyncio.timeout(_PATIENCE_S):

        def spawn(work: Coroutine[Any, Any, ResultT], *, name: str) -> asyncio.Task[ResultT]:
            return group.create_task(work, name=name)

        live = LiveListener(
            transcriber=ours,
            detector=listener,
            manager=manager,
            key=_KEY,
            speaker=_KEY,
            events=screen,
            spawn=spawn,
            clock=_CLOCK,
        )
        await live.open()
        await _play(live, quiet(_BEFORE_S))
        await _play(live, sentence)
        ended = _CLOCK.monotonic()
        after = group.create_task(_play(live, quiet(_AFTER_S)))
        at, message = await flushed
        after.cancel()
        await live.close()
    await manager.close()
    return _Message(
        after_s=at - ended,
        text=message.text,
        reason=message.reason,
        partials=sum(bool(shown.strip("|")) for shown in screen.partials),
    )


async def _play(live: LiveListener, pcm: bytes) -> None:
    """Feed sound in real time, as a microphone does."""
    began = _CLOCK.monotonic()
    for number, start in enumerate(range(0, len(pcm), _CHUNK_BYTES), start=1):
        await _CLOCK.sleep(max(0.0, began + number * _CHUNK_S - _CLOCK.monotonic()))
        live.feed(pcm[start : start + _CHUNK_BYTES])
