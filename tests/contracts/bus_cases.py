"""The implementations of the bus, each with what a test needs to wait for its signals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.cluster.bus import Bus, EventStream, Unsubscribe
from gateway.cluster.in_process import InProcessBus
from gateway.cluster.postgres_transport import PostgresTransport
from gateway.cluster.redis_transport import RedisTransport
from gateway.cluster.remote import RemoteBus
from gateway.cluster.signals import (
    Answered,
    Control,
    Interrupt,
    LiveTurn,
    Release,
    StopBefore,
    Withdrawn,
)
from gateway.cluster.transport import Transport
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import SystemClock
from pipeline.domain.events import LlmToken, PipelineEvent, ResponseComplete, TurnStarted
from pipeline.domain.ids import AccountKey, ThreadKey
from pipeline.domain.ports import EventSender
from tests.support.carried_bus import CarriedBus
from tests.support.valkey import Valkey

MAIN: AccountKey = ("telegram", "main")
SECOND: AccountKey = ("telegram", "second")
THREAD, OTHER = "telegram:main:1", "telegram:main:2"
STOP = StopBefore(thread=THREAD, seq=7, cancelled=2)
CONTROLS: tuple[Control, ...] = (
    STOP,
    Withdrawn(thread=THREAD, seq=5),
    Interrupt(thread=THREAD, seq=8, at=1_700_000_000.25),
    Answered(thread=THREAD, interaction_id="tool_act_1"),
    Release(thread=THREAD),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BusCase:
    """One implementation: signals are published on `publisher` and subscribed to on `subscriber`, which may
    be the same, or two that are connected."""

    publisher: Bus
    subscriber: Bus
    settle: Callable[[], Awaitable[None]]
    """Waits until all subscriptions hold and everything published has arrived."""


MakeCase = Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[BusCase]]


@asynccontextmanager
async def in_process(_request: pytest.FixtureRequest) -> AsyncIterator[BusCase]:
    bus = InProcessBus()
    yield BusCase(publisher=bus, subscriber=bus, settle=_nothing_is_on_its_way)
    await bus.close()


@asynccontextmanager
async def as_json(_request: pytest.FixtureRequest) -> AsyncIterator[BusCase]:
    bus = CarriedBus()
    yield BusCase(publisher=bus, subscriber=bus, settle=bus.deliver)
    await bus.close()


@asynccontextmanager
async def redis(_request: pytest.FixtureRequest) -> AsyncIterator[BusCase]:
    with TemporaryDirectory() as folder:
        async with Valkey(Path(folder)) as server, two_processes(RedisTransport(server.url)) as case:
            yield case


@asynccontextmanager
async def postgres(request: pytest.FixtureRequest) -> AsyncIterator[BusCase]:
    async with two_processes(PostgresTransport(request.getfixturevalue("postgres_server_url"))) as case:
        yield case


@asynccontextmanager
async def two_processes(*transports: Transport) -> AsyncIterator[BusCase]:
    """Two buses over the same servers, connected. On a busy machine no server counts as hung."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.cluster.link.MOST_UNANSWERED", 1_000)
        patch.setattr("gateway.cluster.link.CONNECT_S", 300.0)
        async with _two_buses(*transports) as case:
            yield case


@asynccontextmanager
async def _two_buses(*transports: Transport) -> AsyncIterator[BusCase]:
    buses = (
        RemoteBus(transports, SystemClock(), Supervisor().spawn),
        RemoteBus(transports, SystemClock(), Supervisor().spawn),
    )
    for bus in buses:
        await bus.open()
        await bus.round_trip()
    publisher, subscriber = buses

    async def settle() -> None:
        # Twice, as a handler may publish: what it publishes arrives in the second round.
        for _ in range(2):
            # A text that the subscriber sends itself, after all else is with the server, arrives last.
            await publisher.settled()
            await subscriber.settled()
            await subscriber.round_trip()
            await subscriber.settled()

    yield BusCase(publisher=publisher, subscriber=subscriber, settle=settle)
    for bus in buses:
        await bus.close()


CASES: tuple[MakeCase, ...] = (in_process, as_json, redis, postgres)


async def _nothing_is_on_its_way() -> None:
    """Return: a signal has arrived when it is published."""


@dataclass(slots=True)
class Reader:
    """An `EventReader` that records what it was given, in order, and raises where a test wants it."""

    shown: list[tuple[str, PipelineEvent]] = field(default_factory=list)
    """(message id of the turn, event)"""
    seen: list[str] = field(default_factory=list)
    """`observed` and `sent` with the event's type."""
    turns: list[LiveTurn] = field(default_factory=list)
    broken_turns: frozenset[str] = frozenset()
    broken_types: frozenset[str] = frozenset()

    def sender_for(self, turn: LiveTurn) -> EventSender:
        if turn.message_id in self.broken_turns:
            raise RuntimeError("the channel cannot show it")
        self.turns.append(turn)
        return _Sender(self, turn.message_id)

    def observe(self, thread: ThreadKey, event: PipelineEvent) -> None:
        self.seen.append(f"{thread.chat} observed {event.type}")

    def types(self, message_id: str) -> list[str]:
        """The types of the events that were sent for a turn."""
        return [event.type for turn, event in self.shown if turn == message_id]


@dataclass(frozen=True, slots=True)
class _Sender:
    reader: Reader
    message_id: str

    async def send_event(self, event: PipelineEvent) -> None:
        if event.type in self.reader.broken_types:
            raise RuntimeError("the reader failed")
        self.reader.seen.append(f"sent {event.type}")
        self.reader.shown.append((self.message_id, event))


def live_turn(
    message_id: str = "m1", *, chat: str = "1", account: AccountKey = MAIN, fence: int = 1
) -> LiveTurn:
    """A turn."""
    thread = ThreadKey(channel=account[0], account=account[1], chat=chat)
    return LiveTurn(thread=thread, message_id=message_id, fence=fence, reply_handle="h:7", private=False)


def started(message_id: str = "m1") -> TurnStarted:
    """A turn's first event."""
    return TurnStarted(session_id="ses", message_id=message_id)


def token(offset: int, message_id: str = "m1") -> LlmToken:
    """One character of an answer."""
    return LlmToken(session_id="ses", message_id=message_id, text="é", offset=offset)


def complete(message_id: str = "m1") -> ResponseComplete:
    """A turn's last event."""
    return ResponseComplete(session_id="ses", message_id=message_id, content="done", entry_id=4)


async def send(stream: EventStream, *events: PipelineEvent) -> None:
    """Send as a turn does."""
    for event in events:
        stream.observe(event)
        # A reader in the same process may raise; the turn logs that.
        with suppress(RuntimeError):
            await stream.send_event(event)


class Seen:
    """The wakes, the controls of `own_1` and the rows of MAIN that arrived, in order."""

    def __init__(self) -> None:
        self.signals: list[object] = []

    def subscribe(self, case: BusCase) -> tuple[Unsubscribe, ...]:
        """Subscribe to all three; what ends each."""
        bus = case.subscriber
        return (
            bus.on_wake(self.signals.append),
            bus.on_control("own_1", self.signals.append),
            bus.on_outbox(MAIN, lambda _account, row: self.signals.append(row)),
        )
