"""A LiveSpeechService with the shipped fakes, and what its streams and its inbox received."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from adapters.channel import Acceptance
from gateway.agents.routes import AgentRoutes
from gateway.agents.speech_lookup import SpeechLookup
from gateway.config import DEFAULT_AGENT, AgentSpeech
from gateway.runtime.tasks import Supervisor
from gateway.speech.live_sessions import Accepting, LiveSettings, LiveSpeechService
from gateway.speech.live_stream import LiveAudioStream
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.live import LiveEvent
from pipeline.domain.messages import Author, BargeIn, Inbound, InboundMessage
from tests.voice.live_harness import Scribe, pause, speak
from voice.streaming.vad_port import EnergyDetector
from voice.transcription.scripted_transcriber import ScriptedAnswer

HERE = ThreadKey(channel="web", account="local", chat="c1")
ANN, BOB = Author(id="ann", name="Ann"), Author(id="bob", name="Bob")


@dataclass(slots=True)
class FakeInbox:
    """Replaces the inbox."""

    items: list[Inbound] = field(default_factory=list)
    refusal: str | None = None
    fails: int = 0
    """The number of deliveries that fail with a StorageError."""

    async def accept(self, item: Inbound) -> Acceptance:
        if self.fails:
            self.fails -= 1
            raise StorageError("disk full")
        self.items.append(item)
        if self.refusal is not None:
            return Acceptance(status="refused", message_id=item.message_id, reason=self.refusal)
        return Acceptance(status="accepted", message_id=item.message_id)

    @property
    def stops(self) -> list[BargeIn]:
        return [item for item in self.items if isinstance(item, BargeIn)]

    @property
    def messages(self) -> list[InboundMessage]:
        return [item for item in self.items if isinstance(item, InboundMessage)]

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(message.author.id, message.text) for message in self.messages]


@dataclass(slots=True, kw_only=True)
class LiveSpeechHarness:
    """A LiveSpeechService and the fakes that it uses."""

    service: LiveSpeechService
    clock: ManualClock
    scribe: Scribe
    detector: EnergyDetector
    fake_inbox: FakeInbox
    supervisor: Supervisor
    answering: set[str]
    running: dict[str, str]
    """The message whose turn is running, by thread."""
    events: list[LiveEvent] = field(default_factory=list)
    """The events of the streams that `open_stream` opened."""

    async def open_stream(self, author: Author = ANN, *, hands_free: bool = True) -> LiveAudioStream:
        return await self.service.open(HERE, author, on_event=self.events.append, hands_free=hands_free)

    async def speak(self, microphone: LiveAudioStream, spoken_s: float, silent_s: float = 0.0) -> None:
        await speak(microphone.feed, self.clock, spoken_s)
        await pause(microphone.feed, self.clock, silent_s)

    async def until_done(self, work: Coroutine[Any, Any, None]) -> None:
        """Advance the clock until `work` is done."""
        task = self.supervisor.spawn(work, name="work")
        while not task.done():
            await self.clock.advance(0.1)
        await task

    def events_of(self, kind: type[LiveEvent]) -> list[LiveEvent]:
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def open_live_speech(
    *finals: ScriptedAnswer,
    partials: Iterable[ScriptedAnswer] = (),
    store: Store | None = None,
    inbox: Accepting | None = None,
    clock: ManualClock | None = None,
    settings: LiveSettings | None = None,
    speech: AgentSpeech | None = None,
    crashes: bool = False,
) -> AsyncIterator[LiveSpeechHarness]:
    """A LiveSpeechService on a store. With `crashes`, it ends without `close`."""
    clock, supervisor, detector = clock or ManualClock(), Supervisor(), EnergyDetector()
    scribe, fake_inbox, answering = Scribe(clock, finals, partials), FakeInbox(), set[str]()
    running: dict[str, str] = {}
    if store is None:
        store = MemoryStore()
        await store.open()
    service = LiveSpeechService(
        transcriber=scribe,
        listener=detector,
        inbox=inbox or fake_inbox,
        voices=store.voices,
        speech_of=SpeechLookup({DEFAULT_AGENT: speech or AgentSpeech()}, AgentRoutes(), store),
        clock=clock,
        answering=answering.__contains__,
        running=lambda thread: running.get(thread, ""),
        supervisor=supervisor,
        settings=settings,
    )
    await service.start()
    harness = LiveSpeechHarness(
        service=service,
        clock=clock,
        scribe=scribe,
        detector=detector,
        fake_inbox=fake_inbox,
        supervisor=supervisor,
        answering=answering,
        running=running,
    )
    try:
        yield harness
        if not crashes:
            await harness.until_done(service.close())
    finally:
        await supervisor.close()
