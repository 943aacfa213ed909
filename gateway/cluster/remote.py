"""The bus between processes: what has a subscriber in this process is called, all else is carried.

The first transport that is up carries a signal, so a second one is a spare: each process receives from all.

| topic | carries | listened to by |
|---|---|---|
| `wake` | wakes for whichever worker has a thread, or for all of them | each process |
| `wake:ID` | wakes for one worker | the worker itself |
| `workers` | what each worker announces | each process |
| `changed` | changes of books | each process |
| `control:OWNER` | controls | the process with the name; `*` is each that runs turns, or see `holder_of` |
| `outbox:CHANNEL:ACCOUNT` | outbox signals | the process that sends on the account |
| `events:CHANNEL:ACCOUNT` | events of turns | the process that shows the account |
| `recorded:CHANNEL:ACCOUNT` | entries of the log | the process that shows the account |
| `process:ID` | probes | the process itself |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Final, NoReturn

from gateway.cluster.backlog import Backlog
from gateway.cluster.bus import (
    EVERY_OWNER,
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
from gateway.cluster.link import BusLink
from gateway.cluster.shown_turns import ShownTurns
from gateway.cluster.signals import (
    Changed,
    Control,
    ControlSignal,
    Here,
    LiveTurn,
    OutboxReady,
    Recorded,
    Signal,
    TurnEvent,
    Wake,
)
from gateway.cluster.transport import Transport
from gateway.cluster.wakes import WAKE, WORKERS, ProcessWakes, SentTo, topic_of
from pipeline.domain.background import Spawn
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.events import LlmToken, PipelineEvent
from pipeline.domain.ids import AccountKey, new_id

_log = logging.getLogger(__name__)


_CHANGED: Final = "changed"
_PROBE: Final = "probe"


class RemoteBus:
    """The `Bus` of one process among several. One may subscribe before `open`, and while a server is away."""

    def __init__(
        self,
        transports: Sequence[Transport],
        clock: Clock,
        spawn: Spawn,
        *,
        count_wake: Callable[[SentTo], None] = lambda _to: None,
    ) -> None:
        """`count_wake` is called with whom each wake was sent to."""
        self._id = new_id("bus")
        self._own = InProcessBus()
        self._topics: dict[str, int] = {}
        """Subscriptions of this process, by topic."""
        own_topic, probe = f"process:{self._id}", f"{self._id} {_PROBE}"
        self._links = tuple(
            BusLink(transport, own_topic=own_topic, probe=probe, clock=clock) for transport in transports
        )
        for link in self._links:
            for topic in (WAKE, topic_of(self._id), WORKERS, _CHANGED):
                link.listen(topic)
        self._wakes = ProcessWakes(clock, publish=self._publish, wake_here=self._own.wake, count=count_wake)
        self._shown = ShownTurns(self._own)
        self._events = Backlog[TurnEvent]()
        self._spawn = spawn
        self._tasks: list[asyncio.Task[NoReturn]] = []
        self._closed = False

    @property
    def trouble(self) -> str:
        """See `Bus.trouble`."""
        return "; ".join(link.trouble for link in self._links if not link.up)

    async def open(self) -> None:
        """See `Bus.open`."""
        for link in self._links:
            self._tasks.append(self._spawn(link.run(partial(self._arrive, link)), name="signals"))
        self._tasks.append(self._spawn(self._show(), name="events of other processes"))
        self._tasks.append(self._spawn(self._wakes.run(), name="known workers"))

    # -- publishing ---------------------------------------------------------------------------

    def wake(self, thread: str) -> None:
        """See `Bus.wake`."""
        self._wakes.wake(thread)

    def wake_holder(self, thread: str) -> None:
        """See `Bus.wake_holder`."""
        self._wakes.wake_holder(thread)

    def take_wakes(self, taker: WakeTaker) -> Unsubscribe:
        """See `Bus.take_wakes`."""
        self._wakes.take_by(taker)
        return partial(self._wakes.take_by, None)

    @property
    def workers(self) -> int:
        """See `Bus.workers`."""
        return self._wakes.workers

    @property
    def room(self) -> int | None:
        """See `Bus.room`."""
        return self._wakes.room

    def changed(self, book: str, key: str = "") -> None:
        """See `Bus.changed`."""
        self._own.changed(book, key)
        self._publish(_CHANGED, signal_to_json(Changed(book=book, key=key)), key=(_CHANGED, book, key))

    def control(self, owner: str, control: Control) -> None:
        """See `Bus.control`."""
        if own := (topic := _control(owner)) in self._topics:
            self._own.control(owner, control)
        if not own or owner == EVERY_OWNER:
            self._publish(topic, signal_to_json(ControlSignal(owner=owner, control=control)))

    def outbox(self, account: AccountKey, row_id: int) -> None:
        """See `Bus.outbox`."""
        if (topic := _outbox(account)) in self._topics:
            self._own.outbox(account, row_id)
        else:
            self._publish(topic, signal_to_json(OutboxReady(account=account, row_id=row_id)), key=topic)

    def events(self, turn: LiveTurn) -> EventStream:
        """See `Bus.events`."""
        topic = _events(turn.thread.account_key)
        self._wakes.known.ran(turn.thread.encode(), "")
        if topic in self._topics:
            return self._own.events(turn)
        numbers = count(1)

        async def send(event: PipelineEvent) -> None:
            signal = TurnEvent(turn=turn, seq=next(numbers), event=event)
            self._publish(topic, signal_to_json(signal), token=isinstance(event, LlmToken))

        return EventStream(turn.fence, send, _observed_where_it_is_shown)

    def recorded(self, recorded: Recorded) -> None:
        """See `Bus.recorded`."""
        if (topic := _recorded(recorded.thread.account_key)) in self._topics:
            self._own.recorded(recorded)
        else:
            self._publish(topic, signal_to_json(recorded))

    # -- subscribing --------------------------------------------------------------------------

    def on_wake(self, handler: OnWake) -> Unsubscribe:
        """See `Bus.on_wake`."""
        return self._own.on_wake(handler)

    def on_changed(self, handler: OnChanged) -> Unsubscribe:
        """See `Bus.on_changed`."""
        return self._own.on_changed(handler)

    def on_control(self, owner: str, handler: OnControl) -> Unsubscribe:
        """See `Bus.on_control`."""
        return self._listen(_control(owner), self._own.on_control(owner, handler))

    def on_events(self, account: AccountKey, reader: EventReader) -> Unsubscribe:
        """See `Bus.on_events`."""
        return self._listen(_events(account), self._own.on_events(account, reader))

    def on_outbox(self, account: AccountKey, handler: OnOutbox) -> Unsubscribe:
        """See `Bus.on_outbox`."""
        return self._listen(_outbox(account), self._own.on_outbox(account, handler))

    def on_recorded(self, account: AccountKey, handler: OnRecorded) -> Unsubscribe:
        """See `Bus.on_recorded`."""
        return self._listen(_recorded(account), self._own.on_recorded(account, handler))

    async def settled(self) -> None:
        """Wait until what was published is with the servers that are up, and what has arrived is shown."""
        for link in self._links:
            if link.up and not self._closed:
                await link.settled()
        if not self._closed:
            await self._events.settled()

    async def round_trip(self) -> None:
        """Wait until a text that this process sends itself has come back over the server that carries now."""
        if not self._closed:
            await self._carrying().round_trip()

    async def close(self) -> None:
        """See `Bus.close`."""
        self._closed = True
        await self._own.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- inside -------------------------------------------------------------------------------

    def _publish(self, topic: str, text: str, *, key: object = None, token: bool = False) -> None:
        if self._closed:
            return
        self._carrying().post(topic, f"{self._id} {text}", key=key, token=token)

    def _carrying(self) -> BusLink:
        """The first that is up, or the first."""
        return next((link for link in self._links if link.up), self._links[0])

    def _listen(self, topic: str, end: Unsubscribe) -> Unsubscribe:
        self._topics[topic] = self._topics.get(topic, 0) + 1
        for link in self._links:
            link.listen(topic)
        left = [topic]

        def unsubscribe() -> None:
            end()
            if left:
                self._unlisten(left.pop())

        return unsubscribe

    def _unlisten(self, topic: str) -> None:
        self._topics[topic] -= 1
        if not self._topics[topic]:
            del self._topics[topic]
            for link in self._links:
                link.unlisten(topic)

    def _arrive(self, link: BusLink, text: str) -> None:
        sender, _, body = text.partition(" ")
        if sender == self._id:
            # This process needs only its probes back; its other signals reached their subscribers by a call.
            if body.startswith(_PROBE):
                link.arrived(text)
            return
        try:
            signal = signal_from_json(body)
        except InvalidInput as error:
            _log.warning("a signal was not understood", extra={"reason": str(error)})
        else:
            self._deliver(sender, signal)

    def _deliver(self, sender: str, signal: Signal | None) -> None:
        """Pass on a signal of another process."""
        match signal:
            case Wake():
                self._wakes.arrived(signal)
            case Here():
                self._wakes.known.heard(sender, signal.room)
            case Changed():
                self._own.changed(signal.book, signal.key)
            case ControlSignal():
                self._own.control(signal.owner, signal.control)
            case OutboxReady():
                self._own.outbox(signal.account, signal.row_id)
            case Recorded():
                self._own.recorded(signal)
            case TurnEvent():
                if signal.seq == 1:
                    self._wakes.known.ran(signal.turn.thread.encode(), sender)
                self._events.put(signal, token=isinstance(signal.event, LlmToken))
            case None:
                # A newer version sent it.
                return

    async def _show(self) -> NoReturn:
        """Show events in a separate task: a channel that is slow delays no wake and no stop."""
        while True:
            for signal in await self._events.take(1):
                await self._shown.show(signal)
            self._events.done()


def _control(owner: str) -> str:
    return f"control:{owner}"


def _outbox(account: AccountKey) -> str:
    return f"outbox:{account[0]}:{account[1]}"


def _recorded(account: AccountKey) -> str:
    return f"recorded:{account[0]}:{account[1]}"


def _events(account: AccountKey) -> str:
    return f"events:{account[0]}:{account[1]}"


def _observed_where_it_is_shown(event: PipelineEvent) -> None:
    """Do nothing: the process that shows the event observes it."""
