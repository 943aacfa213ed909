"""Scripted speech recognition and synthesis: they record their input and give the answers of the test."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from adapters.channel import LiveStream, OnLive, VoiceClip
from pipeline.domain.ids import ThreadKey
from pipeline.domain.live import LiveEvent
from pipeline.domain.messages import Author

_SECOND = 32_000


@dataclass(slots=True, kw_only=True, eq=False)
class ScriptedStream:
    """One open microphone. `finishing` and `closing` are held until `gate` is set."""

    thread: ThreadKey
    author: Author
    hands_free: bool
    on_event: OnLive
    gate: asyncio.Event
    error: Exception | None = None
    heard: list[bytes] = field(default_factory=list)
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    """More than a second of sound was heard."""
    calls: list[str] = field(default_factory=list)
    last_words: tuple[LiveEvent, ...] = ()
    """Given when it closes."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def feed(self, pcm: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.heard.append(pcm)
        if sum(map(len, self.heard)) > _SECOND:
            self.enough.set()

    async def finish(self) -> None:
        self.calls.append("finish")
        await self.gate.wait()

    async def close(self) -> None:
        self.calls.append("close")
        await self.gate.wait()
        for event in self.last_words:
            self.on_event(event)
        self.closed.set()


class ScriptedLive:
    """A LiveSpeech. `error` is raised instead of opening; `opening` holds that up."""

    def __init__(self) -> None:
        self.streams: list[ScriptedStream] = []
        self.error: Exception | None = None
        self.opening = asyncio.Event()
        self.opening.set()
        self.gate = asyncio.Event()
        self.gate.set()

    async def open(
        self, thread: ThreadKey, author: Author, *, on_event: OnLive, hands_free: bool = True
    ) -> LiveStream:
        await self.opening.wait()
        if self.error is not None:
            raise self.error
        stream = ScriptedStream(
            thread=thread, author=author, hands_free=hands_free, on_event=on_event, gate=self.gate
        )
        self.streams.append(stream)
        return stream

    @property
    def stream(self) -> ScriptedStream:
        """The newest."""
        return self.streams[-1]


class ScriptedVoice:
    """A ReadAloud whose clip is the text itself. `gate` holds it up, `error` is raised."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.answers: list[tuple[ThreadKey, str]] = []
        """The thread and the message of each answer."""
        self.error: Exception | None = None
        self.cancelled = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def read(self, text: str, *, thread: ThreadKey, message_id: str) -> VoiceClip:
        self.said.append(text)
        self.answers.append((thread, message_id))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if self.error is not None:
            raise self.error
        return VoiceClip(data=text.encode(), mime="audio/ogg", seconds=1.5, waveform=b"\x00\xff")
