"""Run a gateway: start its parts in order, report readiness, drain and stop.

It builds nothing: `bootstrap` passes it the parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import field
from typing import Any

from gateway.app.agents import BuiltAgents
from gateway.app.heartbeat import Heartbeat
from gateway.app.llm import ModelClients
from gateway.app.memory import Memory
from gateway.app.page_guests import PageGuests
from gateway.app.platforms import LeftOut
from gateway.app.plugin_channels import only_own
from gateway.app.shared_state import SharedState
from gateway.app.signals import release_what_no_wake_reaches
from gateway.app.tools import SharedTools
from gateway.app.voice import Voice
from gateway.channels.registry import ChannelRegistry, key_of
from gateway.channels.supervisor import (
    SHARED_AGAIN_S,
    TOKEN_IN_USE_S,
    ChannelStatus,
    ChannelSupervisor,
    ReceivingLease,
    any_alive,
    channel_lines,
)
from gateway.cluster.bus import Bus
from gateway.config.cluster import ClusterSettings
from gateway.delivery.outbox import Delivery
from gateway.delivery.shared_outbox import SharedOutbox
from gateway.files.folder_store import FolderFileStore
from gateway.ingress.inbox import Inbox
from gateway.interactions.question_expiry import QuestionExpiry
from gateway.people.directory import PersonDirectory
from gateway.reading.reader_client import SandboxedReader
from gateway.runtime.data_dir import DataDir
from gateway.runtime.http_server import Addresses, Server
from gateway.runtime.tasks import Supervisor
from gateway.safety.crisis_records import CrisisRecords
from gateway.scheduling.jobs import JobRunner
from gateway.storage.health import StoreHealth
from gateway.storage.leases import AccountLeases
from gateway.storage.ports import Store
from gateway.storage.shared_leases import SharedAccounts
from gateway.turns.worker import Worker
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import AccountKey
from pipeline.safety.vector_judge import VectorJudge

_log = logging.getLogger(__name__)

DRAIN_S = 18.0
"""Seconds for running turns; with the later steps within the 30 s that service managers commonly grant."""
HALT_AFTER_S = 9.0
"""Half of them: a model call that begins later would often be cut off, and made again at the next start."""
_DELIVERY_S = 3.0
_SWEEP_AGAIN_S = 60.0
_STORE_LINE = "store down (takes no writes; messages are refused until it does)"
_BUS_LINE = "bus degraded: {} (messages are found in the store, a little later)"

_LEFT_OUT = "left out, as its plug-in is broken; the log and `parlour doctor` say why"
_STORE_REMEDY = "stop the gateway and restore a backup, see docs/guides/deploy.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayParts:
    """Everything that the gateway starts and closes."""

    data: DataDir
    store: Store
    files: FolderFileStore
    reading: SandboxedReader
    bus: Bus
    people: PersonDirectory
    guests: PageGuests
    health: StoreHealth
    channels: ChannelRegistry
    inbox: Inbox
    worker: Worker
    accounts: AccountLeases
    delivery: Delivery
    addresses: Addresses
    models: ModelClients
    voice: Voice
    tools: SharedTools
    agents: BuiltAgents
    expiries: QuestionExpiry
    jobs: JobRunner
    shared: SharedState
    heartbeat: Heartbeat
    crises: CrisisRecords
    memory: Memory
    crisis_vectors: VectorJudge | None
    clock: Clock
    remove_reactions: Callable[[], Coroutine[Any, Any, None]]
    """Removes what an earlier process has left on answered messages."""
    sweep_media: Callable[[], Awaitable[int]]
    """Removes the voice notes that no unfinished message refers to; returns how many."""
    expire_media: Callable[[], Coroutine[Any, Any, None]]
    """Removes uploads whose time is over, until it is cancelled."""
    background: Supervisor
    """Channels, renewals and warm-ups: cancelled at once when the gateway stops."""
    turns: Supervisor
    """Runners of threads: given time to finish."""
    deliveries: Supervisor
    leases: Mapping[AccountKey, ReceivingLease] = field(default_factory=dict)
    """For channels with a bot token: only one process at a time may receive with a token."""
    foreign: frozenset[AccountKey] = frozenset()
    """The accounts of plug-ins' channels."""
    left_out: tuple[LeftOut, ...] = ()
    """The configured channels that could not be built."""
    cluster: ClusterSettings = ClusterSettings()
    outbox: SharedOutbox | None = None
    """Finds the replies that other processes have committed, in a process among several that sends."""
    cancel_unknown: Callable[[], Awaitable[int]] | None = None
    """Cancels what waits for a workflow that is no longer configured; returns how many."""


class Gateway:
    """One process's gateway. `start` once, `stop` once."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self.server: Server | None = None
        """Optional; set before `start`. The server asks this gateway whether it is ready."""
        self._ready = False
        self._supervisors = [
            ChannelSupervisor(
                adapter,
                clock=parts.clock,
                lease=parts.leases.get(key_of(adapter)),
                token_again_s=SHARED_AGAIN_S if parts.cluster.shared else TOKEN_IN_USE_S,
            )
            for adapter in parts.channels
            if parts.cluster.is_edge
        ]
        # Without the reason: a status is public, and the reason is text of a foreign package.
        self._left_out = tuple(
            ChannelStatus(channel=one.channel, account=one.account, state="down", words=_LEFT_OUT)
            for one in parts.left_out
        )
        self._channels: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        """Whether messages are accepted: started, the store can be used, and not every channel is down."""
        parts = self._parts
        able = self._ready and parts.health.writable and parts.shared.usable
        return able and any_alive(self.channel_statuses())

    def channel_statuses(self) -> tuple[ChannelStatus, ...]:
        """The current status of each channel."""
        return (*(supervisor.status for supervisor in self._supervisors), *self._left_out)

    def channel_lines(self) -> tuple[str, ...]:
        """One status line per channel, and one for the store, the bus or the processes if something is
        unusual there."""
        health = self._parts.health
        full = () if health.writable else (_STORE_LINE,)
        # Messages are still accepted: a damaged page seldom concerns them, and the operator chooses when to
        # repair it.
        damaged = (f"store damaged: {health.damage[0]} ({_STORE_REMEDY})",) if health.damage else ()
        carried = (_BUS_LINE.format(trouble),) if (trouble := self._parts.bus.trouble) else ()
        unusual = (*full, *damaged, *carried, *self._parts.shared.lines())
        return (*unusual, *channel_lines(self.channel_statuses()))

    @property
    def heartbeats_rest(self) -> bool:
        """Whether nothing that is watched is being checked, and nothing is due now."""
        return self._parts.heartbeat.scheduler.is_idle

    @property
    def worker(self) -> Worker:
        """What runs the turns."""
        return self._parts.worker

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The configured channels that could not be built, each with the reason."""
        return self._parts.left_out

    @property
    def url(self) -> str:
        """The page's address."""
        return self._parts.addresses.url

    async def start(self) -> None:
        """Start store and server, resume what an earlier process left, start channels. Models load meanwhile.

        Raises ConfigurationError or StorageError with a readable message, after closing everything.
        """
        parts = self._parts
        try:
            await parts.store.open()
            await self._take_leases()
            await parts.people.load()
            await parts.guests.load()
            orphans = 0
            if not parts.cluster.shared:
                await parts.jobs.recover()
                orphans = await parts.sweep_media()
            if self.server is not None:
                await self.server.start()
            await parts.bus.open()
            parts.background.spawn(parts.accounts.coordinator.keep_renewing(), name="lease renewal")
            # Unfinished work comes before new messages: first the unsent replies, which are older than the
            # answers of the unfinished turns, then those turns, then the channels.
            unsent = 0 if parts.cluster.shared else await parts.delivery.recover()
            if parts.cancel_unknown is not None:
                await parts.cancel_unknown()
            waiting = await self._recover_turns()
            await parts.voice.start()
            for supervisor in self._supervisors:
                self._start_channel(supervisor)
            # Two turns of the loop, so that every channel's start has run: first the supervisor's first
            # step, then the first step of the task that it starts.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self._note_page()
        except BaseException:
            await self._close()
            raise
        self._ready = True
        for one in parts.left_out:
            names = {"channel": one.channel, "account": one.account, "reason": one.problem}
            _log.error("a channel is left out", extra=names)
        if waiting or unsent or orphans:
            left = {"messages": waiting, "replies": unsent, "orphaned_voice_notes": orphans}
            _log.info("taken up again", extra=left)
        self._start_services()

    def _start_services(self) -> None:
        """Start what runs beside channels and turns until the gateway stops."""
        parts = self._parts
        parts.background.spawn(parts.remove_reactions(), name="reactions left")
        if parts.outbox is not None:
            parts.background.spawn(parts.outbox.run(), name="replies of other processes")
        if parts.cluster.is_worker:
            parts.background.spawn(parts.jobs.run(), name="jobs")
        parts.shared.once(parts.expiries.run, name="expiring questions")
        parts.background.spawn(parts.guests.watch(), name="invited people")
        parts.background.spawn(parts.agents.warm_up(), name="model warm-up")
        parts.background.spawn(parts.voice.warm_up(), name="voice warm-up")
        if parts.crisis_vectors is not None:
            parts.background.spawn(parts.crisis_vectors.warm_up(), name="crisis vectors warm-up")
        # The processes of one gateway share the data folder.
        parts.shared.once(parts.files.remove_old, name="old files")
        parts.shared.once(parts.expire_media, name="old uploads")
        if parts.cluster.shared:
            parts.shared.once(self._sweep_media, name="uploads left")
        parts.shared.once(parts.crises.remove_old, name="old crisis records")
        parts.heartbeat.start(parts.shared.once)
        parts.memory.start(parts.background, parts.shared.once)
        parts.shared.once(parts.tools.chronicle.remove_old, name="old changes of files")
        parts.shared.once(parts.tools.command_folders.remove_old, name="old files of commands")
        parts.shared.start()
        parts.background.spawn(parts.health.watch(), name="store check")
        parts.background.spawn(parts.health.watch_for_damage(), name="store damage check")

    async def _sweep_media(self) -> None:
        """Remove what an earlier gateway has left in the folder, by the one process that does it for all."""
        while True:
            try:
                removed = await self._parts.sweep_media()
            except StorageError as error:
                _log.warning("the uploads left are not removed", extra={"reason": str(error)})
                await self._parts.clock.sleep(_SWEEP_AGAIN_S)
                continue
            if removed:
                _log.info("uploads left were removed", extra={"orphaned_voice_notes": removed})
            return

    async def stop(self, drain_s: float = DRAIN_S, *, halt_after_s: float | None = HALT_AFTER_S) -> bool:
        """Refuse new messages, let running turns finish within `drain_s`, then close everything.

        After `halt_after_s`, turns that still run halt before their next node, whose predecessor is recorded.

        The channels stay connected to send running answers. The inbox refuses new messages, so the platforms
        keep them. False when turns were cut off; the next start resumes them.
        """
        self._ready = False
        clock = self._parts.clock
        began = clock.monotonic()
        await self._parts.voice.stop_listening()
        self._parts.inbox.close()
        left_s = max(0.0, drain_s - (clock.monotonic() - began))
        finished = await self._parts.worker.drain(
            left_s, self._parts.tools.approvals.unanswered, halt_after_s=halt_after_s
        )
        try:
            async with asyncio.timeout(min(drain_s, _DELIVERY_S)):
                await self._parts.deliveries.wait_idle()
        except TimeoutError:
            _log.warning("replies are left for the next start")
        await self._close()
        return finished

    async def _take_leases(self) -> None:
        """Alone, take over what a dead process held; among several, only what has no live owner."""
        parts = self._parts
        if isinstance(parts.accounts, SharedAccounts):
            await parts.accounts.coordinator.report()
            return
        # The lock on the data folder proves that the holder of these leases is dead.
        await parts.store.break_leases()
        await parts.accounts.take(key_of(channel) for channel in parts.channels)

    async def _recover_turns(self) -> int:
        """Begin what was left unfinished; how many entries, or threads among several processes."""
        parts = self._parts
        if not parts.cluster.shared:
            return await parts.worker.recover()
        if not parts.cluster.is_worker:
            return 0
        parts.background.spawn(parts.worker.look_for_work(), name="work of other processes")
        released = release_what_no_wake_reaches(parts.bus, parts.worker, parts.clock)
        parts.background.spawn(released, name="work without signals")
        return await parts.worker.claim()

    async def channels_ended(self) -> None:
        """Wait until every channel has ended by itself, as the terminal does at the end of its input."""
        if self._channels:
            await asyncio.wait(self._channels)

    async def _close(self) -> None:
        parts = self._parts
        await parts.turns.close()
        await parts.deliveries.close()
        await parts.background.close()
        with contextlib.suppress(StorageError):
            await parts.tools.budgets.flush()
        if self.server is not None:
            await self.server.close()
        await parts.agents.close()
        await parts.models.close()
        await parts.voice.close()
        await parts.reading.close()
        await parts.memory.close()
        if parts.crisis_vectors is not None:
            await parts.crisis_vectors.close()
        await parts.bus.close()
        await parts.worker.close()
        await parts.shared.close()
        if isinstance(parts.accounts, SharedAccounts):
            await parts.accounts.coordinator.retire()
        await parts.store.close()
        parts.data.release()

    def _note_page(self) -> None:
        parts = self._parts
        if not parts.cluster.is_edge:
            return
        has_page = self.server is not None and any(channel.name == "web" for channel in parts.channels)
        try:
            parts.data.note_page(parts.addresses.url if has_page else "")
        except OSError as error:
            # Only an attaching `parlour chat` reads it, and reports then that it cannot attach.
            _log.warning("the page's address could not be noted", extra={"reason": str(error.strerror)})

    def _start_channel(self, supervisor: ChannelSupervisor) -> None:
        parts, adapter = self._parts, supervisor.adapter
        accept, key = parts.inbox.accept, key_of(adapter)
        on_inbound = only_own(key, accept) if key in parts.foreign else accept
        task = parts.background.spawn(supervisor.run(on_inbound), name=f"channel {adapter.name}")
        self._channels.append(task)
