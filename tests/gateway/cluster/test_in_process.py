"""The bus of one process calls its subscribers directly, and keeps nothing of a turn that is over.

What every bus does is in tests/contracts/test_bus.py.
"""

from __future__ import annotations

import gc
import weakref

from gateway.cluster.in_process import InProcessBus
from gateway.cluster.signals import Withdrawn
from pipeline.domain.events import PipelineEvent
from pipeline.domain.ids import ThreadKey
from tests.contracts.bus_cases import MAIN, live_turn, started


class _Channel:
    """Reader and sender in one."""

    def __init__(self) -> None:
        self.shown: list[PipelineEvent] = []

    def sender_for(self, _turn: object) -> _Channel:
        return self

    def observe(self, thread: ThreadKey, event: PipelineEvent) -> None:
        """Nothing is tracked."""

    async def send_event(self, event: PipelineEvent) -> None:
        self.shown.append(event)


def test_a_signal_has_arrived_when_the_call_that_publishes_it_returns() -> None:
    bus, seen = InProcessBus(), list[object]()
    bus.on_wake(seen.append)
    bus.on_control("own_1", seen.append)
    bus.on_outbox(MAIN, lambda _account, row: seen.append(row))
    control = Withdrawn(thread="telegram:main:1", seq=1)
    bus.wake("telegram:main:1")
    bus.control("own_1", control)
    bus.outbox(MAIN, 3)
    assert seen == ["telegram:main:1", control, 3]


async def test_a_turn_sends_its_events_by_the_channels_own_method() -> None:
    bus, channel = InProcessBus(), _Channel()
    bus.on_events(MAIN, channel)
    stream = bus.events(live_turn())
    assert stream.send_event == channel.send_event, "no call is between a turn and its channel"
    await stream.send_event(started())
    assert channel.shown == [started()]


def test_a_stream_is_kept_as_long_as_its_turn_keeps_it() -> None:
    bus = InProcessBus()
    bus.on_events(MAIN, _Channel())
    stream = bus.events(live_turn(fence=2))
    kept = weakref.ref(stream)
    assert kept() is stream
    del stream
    gc.collect()
    assert kept() is None
