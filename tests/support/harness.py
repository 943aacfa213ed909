"""A whole gateway in the test's own process: real store, real pipeline, memory channel, scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.access.policy import AccessRule
from gateway.app.bootstrap import Extras
from gateway.app.lifecycle import Gateway
from gateway.cluster.bus import Bus
from gateway.config import Secrets, load
from gateway.storage.ports import Record, Store
from parlour.testing.gateway import started
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.readings import FileReader
from pipeline.graph.definition.spec import GraphSpec
from pipeline.llm.client import LlmClient
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.context import RunContext
from pipeline.tools.tool import ToolGroup
from tests.support.channel import MemoryChannel
from tests.support.default_store import default_store
from tests.support.gateway_process import ONE_BY_ONE
from tests.support.posting_channel import MemoryPosts
from voice.synthesis.synthesizer import SpeechSynthesizer
from voice.transcriber import Transcriber
from voice.transcription.scripted_transcriber import ScriptedTranscriber

THREAD = "console:local:c1"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayHarness:
    """A running gateway and its observable parts."""

    gateway: Gateway
    channel: MemoryChannel
    llm: ScriptedLlm
    store: Store

    async def records(self, *kinds: str, thread: str = THREAD) -> list[Record]:
        """The thread's log, optionally of some kinds only."""
        records = await self.store.read_log(thread)
        return [record for record in records if not kinds or record.kind in kinds]


@asynccontextmanager
async def open_gateway(
    data: Path,
    *overrides: str,
    llm: ScriptedLlm | None = None,
    channel: MemoryChannel | None = None,
    store: Store | None = None,
    transcriber: Transcriber | None = None,
    speaker: SpeechSynthesizer | None = None,
    clock: Clock | None = None,
    graph: GraphSpec[RunContext] | None = None,
    crash_at: str | None = None,
    drain_s: float = 5.0,
    posts: MemoryPosts | None = None,
    rule: AccessRule | None = None,
    model: LlmClient | None = None,
    tools: tuple[ToolGroup, ...] = (),
    secrets: Secrets | None = None,
    bus: Bus | None = None,
    file_reader: FileReader | None = None,
) -> AsyncIterator[GatewayHarness]:
    """Run a gateway on the folder `data`; the web channel, the quota of messages, titles and the web search
    are off, and each message has a separate turn, unless an override says otherwise.

    `posts` is a posting channel in addition to the showing one, with open access unless `rule` is given.
    `model` replaces the scripted model, `graph` the conversation graph; `crash_at` ends this whole process
    (see `gateway.runtime.crash_labels`).
    """
    quiet = (
        "channels.web.enabled=false",
        "limits.messages_per_minute=0",
        "agent.titles=false",
        'tools.search.backend="none"',
    )
    settings = load(None, {}, [*quiet, *ONE_BY_ONE, f'data.dir="{data}"', *overrides])
    llm = llm or ScriptedLlm.echo()
    channel = channel or MemoryChannel()
    store = store or await default_store(data)
    extras = Extras(
        channels=(lambda _timeline: channel, *([lambda _timeline: posts] if posts is not None else [])),
        rules={(posts.name, posts.account): rule or AccessRule.of(mode="open")} if posts is not None else {},
        clock=clock or SystemClock(),
        llm=model or llm,
        transcriber=transcriber or ScriptedTranscriber(),
        speaker=speaker,
        file_reader=file_reader,
        store=store,
        bus=bus,
        graph=graph,
        tools=tools,
        crash_at=crash_at,
        http=settings.channels.web.enabled or settings.api.enabled,
    )
    async with started(settings, secrets or Secrets(()), extras, drain_s=drain_s) as gateway:
        yield GatewayHarness(gateway=gateway, channel=channel, llm=llm, store=store)
