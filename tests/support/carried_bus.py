"""A bus that carries every signal as JSON text through a bounded queue, as one between processes does."""

from __future__ import annotations

from itertools import count

from gateway.cluster.bus import (
    EventReader,
    EventStream,
    OnChanged,
    OnControl,
    OnOutbox,
    OnRecorded,
    OnWake,
    Unsubscribe,
    WakeTaker,
)
from gateway.cluster.codec import signal_from_json, signal_to_json
from gateway.cluster.in_process import InProcessBus
from gateway.cluster.shown_turns import ShownTurns
from gateway.cluster.signals import (
    Changed,
    Control,
    ControlSignal,
    LiveTurn,
    OutboxReady,
    Recorded,
    Signal,
    TurnEvent,
    Wake,
)
from pipeline.domain.events import LlmToken, PipelineEvent
from pipeline.domain.ids import AccountKey

MOST_TOKENS = 64
"""Tokens in the queue; further ones replace the oldest."""


class CarriedBus:
    """The `Bus`, over text. With `at_once` a signal arrives within the call that publishes it, else by
    `deliver`. `carried` counts the signals that arrived, by type."""

    def __init__(self, *, at_once: bool = False) -> None:
        self._at_once = at_once
        self._subscribers = InProcessBus()
        self._pending: dict[object, str] = {}
        """Texts in order, by what they are merged by."""
        self._tokens: list[object] = []
        self._shown = ShownTurns(self._subscribers)
        self._closed = False
        self.carried: dict[str, int] = {}

    def wake(self, thread: str) -> None:
        self._publish(Wake(thread=thread), ("wake", thread))

    def wake_holder(self, thread: str) -> None:
        self._publish(Wake(thread=thread, held=True), ("held", thread))

    def take_wakes(self, taker: WakeTaker) -> Unsubscribe:
        return self._subscribers.take_wakes(taker)

    @property
    def workers(self) -> int:
        return 1

    @property
    def room(self) -> int | None:
        return None

    def changed(self, book: str, key: str = "") -> None:
        self._publish(Changed(book=book, key=key), ("changed", book, key))

    def control(self, owner: str, control: Control) -> None:
        self._publish(ControlSignal(owner=owner, control=control), object())

    def outbox(self, account: AccountKey, row_id: int) -> None:
        self._publish(OutboxReady(account=account, row_id=row_id), ("outbox", account))

    def events(self, turn: LiveTurn) -> EventStream:
        numbers = count(1)

        async def send(event: PipelineEvent) -> None:
            self._publish_event(TurnEvent(turn=turn, seq=next(numbers), event=event))
            if self._at_once:
                await self.deliver()

        return EventStream(turn.fence, send, _arrives_with_the_event)

    def recorded(self, recorded: Recorded) -> None:
        self._publish(recorded, object())

    def on_wake(self, handler: OnWake) -> Unsubscribe:
        return self._subscribers.on_wake(handler)

    def on_changed(self, handler: OnChanged) -> Unsubscribe:
        return self._subscribers.on_changed(handler)

    def on_control(self, owner: str, handler: OnControl) -> Unsubscribe:
        return self._subscribers.on_control(owner, handler)

    def on_events(self, account: AccountKey, reader: EventReader) -> Unsubscribe:
        return self._subscribers.on_events(account, reader)

    def on_outbox(self, account: AccountKey, handler: OnOutbox) -> Unsubscribe:
        return self._subscribers.on_outbox(account, handler)

    def on_recorded(self, account: AccountKey, handler: OnRecorded) -> Unsubscribe:
        return self._subscribers.on_recorded(account, handler)

    @property
    def trouble(self) -> str:
        return ""

    async def open(self) -> None:
        """Do nothing: there is one process."""

    async def close(self) -> None:
        self._closed = True
        self._pending.clear()
        await self._subscribers.close()

    async def deliver(self) -> None:
        """Deliver what is in the queue, and what its handlers publish meanwhile."""
        while self._pending:
            key = next(iter(self._pending))
            signal = signal_from_json(self._pending.pop(key))
            if key in self._tokens:
                self._tokens.remove(key)
            if isinstance(signal, TurnEvent):
                await self._show(signal)
            elif signal is not None:
                self._arrive(signal)

    def _publish(self, signal: Signal, key: object) -> None:
        if self._closed:
            return
        text = signal_to_json(signal)
        if self._at_once:
            arrived = signal_from_json(text)
            assert arrived is not None
            self._arrive(arrived)
            return
        # The merged signal takes its place behind the last one.
        self._pending.pop(key, None)
        self._pending[key] = text

    def _publish_event(self, signal: TurnEvent) -> None:
        if self._closed:
            return
        key = object()
        self._pending[key] = signal_to_json(signal)
        if isinstance(signal.event, LlmToken):
            self._tokens.append(key)
            if len(self._tokens) > MOST_TOKENS:
                del self._pending[self._tokens.pop(0)]

    def _arrive(self, signal: Signal) -> None:
        self._count(signal)
        match signal:
            case Wake():
                self._subscribers.wake(signal.thread)
            case Changed():
                self._subscribers.changed(signal.book, signal.key)
            case ControlSignal():
                self._subscribers.control(signal.owner, signal.control)
            case OutboxReady():
                self._subscribers.outbox(signal.account, signal.row_id)
            case Recorded():
                self._subscribers.recorded(signal)
            case TurnEvent():
                raise AssertionError("events arrive in `_show`")

    async def _show(self, signal: TurnEvent) -> None:
        self._count(signal)
        await self._shown.show(signal)

    def _count(self, signal: Signal) -> None:
        name = type(signal.control if isinstance(signal, ControlSignal) else signal).__name__
        self.carried[name] = self.carried.get(name, 0) + 1


def _arrives_with_the_event(event: PipelineEvent) -> None:
    """Do nothing: the reader observes the event where it arrives."""
