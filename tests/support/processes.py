"""Several gateways in one test process that share a store and signals, as processes of one cluster do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from gateway.access.policy import AccessRule
from gateway.app.bootstrap import Extras, build
from gateway.app.lifecycle import Gateway
from gateway.cluster.remote import RemoteBus
from gateway.cluster.shared_counts import LocalCounts
from gateway.config import Secrets, load
from gateway.runtime.tasks import Supervisor
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.graph.definition.spec import GraphSpec
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.context import RunContext
from tests.support.channel import MemoryChannel
from tests.support.gateway_process import ONE_BY_ONE
from tests.support.memory_transport import MemoryHub
from tests.support.posting_channel import MemoryPosts
from voice.transcription.scripted_transcriber import ScriptedTranscriber

_QUIET = (
    "channels.web.enabled=false",
    "limits.messages_per_minute=0",
    "agent.titles=false",
    'tools.search.backend="none"',
    'storage.kind="postgres"',
    'storage.url="env:TEST_URL"',
    'bus.kind="redis"',
    'bus.url="env:TEST_URL"',
    "bus.cache_s=0",
)
_PATIENCE_S = 120.0


class SharedMemory(MemoryStore):
    """A MemoryStore that several gateways have open."""

    def __init__(self) -> None:
        super().__init__()
        self._users = 0

    async def open(self) -> None:
        self._users += 1
        await super().open()

    async def close(self) -> None:
        self._users -= 1
        if not self._users:
            await super().close()


class ProcessStore:
    """The store as one process sees it: after `dead` is set, all it calls is refused, as nothing comes from a
    process that was killed."""

    def __init__(self, part: object, dead: asyncio.Event | None = None) -> None:
        self._part = part
        self.dead = dead or asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        if self.dead.is_set() and name != "close":
            raise StorageError("the process is dead")
        found = getattr(self._part, name)
        module = type(found).__module__
        return ProcessStore(found, self.dead) if module.startswith("gateway.storage.memory") else found


@dataclass(slots=True)
class Processes:
    """The gateways of one cluster. Those that hold accounts have a channel each, of the same account."""

    folder: Path
    stack: AsyncExitStack
    store: Store = field(default_factory=SharedMemory)
    hub: MemoryHub = field(default_factory=MemoryHub)
    clock: ManualClock = field(default_factory=ManualClock)
    settings: tuple[str, ...] = ()
    counts: LocalCounts | None = None
    """Those of one process; each gets its own view."""

    async def start(
        self,
        role: str,
        *overrides: str,
        llm: ScriptedLlm | None = None,
        posts: MemoryPosts | None = None,
        graph: GraphSpec[RunContext] | None = None,
    ) -> Process:
        """Start a gateway with the role."""
        channel = MemoryChannel()
        place = (f'data.dir="{self.folder}"', f'cluster.role="{role}"')
        settings = load(
            None,
            {"TEST_URL": "postgresql://test"},
            [*_QUIET, *ONE_BY_ONE, *place, *self.settings, *overrides],
        )
        tasks = Supervisor()
        bus = RemoteBus((self.hub,), self.clock, tasks.spawn)
        posting = () if posts is None else (lambda _timeline: posts,)
        llm = llm or ScriptedLlm.echo()
        seen = ProcessStore(self.store)
        extras = Extras(
            channels=(lambda _timeline: channel, *posting),
            rules={} if posts is None else {(posts.name, posts.account): AccessRule.of(mode="open")},
            clock=self.clock,
            llm=llm,
            transcriber=ScriptedTranscriber.always("hello"),
            store=cast("Store", seen),
            bus=bus,
            counts=None if self.counts is None else self.counts.beside(),
            graph=graph,
            http=False,
        )
        gateway = build(settings, Secrets(()), extras)
        process = Process(gateway=gateway, channel=channel, llm=llm, bus=bus, tasks=tasks, dead=seen.dead)
        self.stack.push_async_callback(process.stop)
        await gateway.start()
        async with asyncio.timeout(_PATIENCE_S):
            await bus.round_trip()
        return process


@dataclass(slots=True)
class Process:
    """One gateway of a cluster."""

    gateway: Gateway
    channel: MemoryChannel
    llm: ScriptedLlm
    bus: RemoteBus
    tasks: Supervisor
    dead: asyncio.Event
    _stopped: bool = False

    async def stop(self) -> None:
        """Stop in order."""
        if not self._stopped:
            self._stopped = True
            await self.gateway.stop(5.0)
            await self.tasks.close()

    async def die(self) -> None:
        """End without giving anything back, as a process that is killed."""
        self._stopped = True
        self.dead.set()
        await self.tasks.close()
        await self.gateway.stop(0.0)


@asynccontextmanager
async def processes(folder: Path, *settings: str) -> AsyncIterator[Processes]:
    """No gateway yet; those that are started are stopped at the end, the last one first. Time passes as fast
    as the gateways can follow."""
    async with AsyncExitStack() as stack:
        cluster = Processes(folder=folder, stack=stack, settings=settings)
        time = Supervisor()
        stack.push_async_callback(time.close)
        time.spawn(_pass_time(cluster.clock), name="time")
        yield cluster


async def _pass_time(clock: ManualClock) -> None:
    while True:
        await clock.advance(0.05)
