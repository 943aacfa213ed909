"""The port for signals. Every implementation passes tests/contracts/test_bus.py.

| signal | reaches | delivered | if it is lost |
|---|---|---|---|
| wake | one worker, or each | at least once, merged by thread | the entry waits for a read of the store |
| changed | each process | at least once, merged by book and key | it is seen within a second |
| control | one owner | at most once, in order | the turn runs to its end; an answer counts at its expiry |
| event | the account's reader | at most once, in order in a turn | the answer appears when it is complete |
| outbox | the account's outbox | at least once, merged by account | the reply waits for the next read |
| recorded | the account's reader | at most once, in order | the entry appears when the page is read again |

All of them are hints: the store decides. A signal without a subscriber is lost, and its publisher gets no
error. Publishing does not block and raises nothing: a subscriber that raises is logged, and the others get
the signal. "At least once" holds for a subscriber that is connected: it is called once or more after the last
signal. Several signals may arrive as one, and one may arrive again, so its handler is idempotent.

An implementation with a queue bounds it. Wakes, changes and outbox signals are merged; of the events only
the tokens of answers may be left out, as `EventSender` allows. Controls and other events are kept: running
turns bound their number.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gateway.cluster.signals import Control, LiveTurn, Recorded
from pipeline.domain.events import PipelineEvent
from pipeline.domain.ids import AccountKey, ThreadKey
from pipeline.domain.ports import EventSender, always

Unsubscribe = Callable[[], None]
"""Ends a subscription. Nothing is delivered to it afterwards. May be called twice."""
EVERY_OWNER: Final = "*"
"""The owner's name under which each process listens that runs turns beside others: which of them runs the
turns of a thread is in the store, and may change."""


def holder_of(account: AccountKey) -> str:
    """The owner's name under which the process listens that has the account, for what it alone can do."""
    return f"account:{account[0]}:{account[1]}"


OnWake = Callable[[str], None]
"""Called with a thread, an encoded ThreadKey."""
OnControl = Callable[[Control], None]
OnRecorded = Callable[[Recorded], None]
OnChanged = Callable[[str, str], None]
"""Called with a book of the store, and the key of what has changed in it; empty for all of it."""
OnOutbox = Callable[[AccountKey, int], None]
"""Called with an account and the newest of its rows that are ready."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class EventStream:
    """Where one turn sends its live events. Both are attributes, so that the bus of one process calls the
    channel with no call between, and can replace them when the stream is cut off.

    A reader in the same process may raise from `send_event`; the turn logs that and continues.
    """

    fence: int
    send_event: Callable[[PipelineEvent], Coroutine[Any, Any, None]]
    """Send one event, in order."""
    observe: Callable[[PipelineEvent], None]
    """Called with an event before it is sent; of the tokens of an answer the first suffices."""
    wants_nodes: Callable[[], bool] = always
    """Whether the events of nodes reach a client now."""

    def cut_off(self) -> None:
        """Drop everything that is sent from now on."""
        self.send_event, self.observe = _drop_sent, _drop_observed


class EventReader(Protocol):
    """The subscriber to an account's live events."""

    def sender_for(self, turn: LiveTurn) -> EventSender:
        """The sender that shows the events of `turn`."""
        ...

    def observe(self, thread: ThreadKey, event: PipelineEvent) -> None:
        """Track the turn of `thread`. Called before the sender gets the event; may miss repeated tokens."""
        ...


class WakeTaker(Protocol):
    """A worker to which wakes are addressed."""

    @property
    def room(self) -> int:
        """How many more turns it could run now. Negative: so many wait, or it ends."""
        ...

    def take(self, thread: str) -> bool:
        """Look at `thread`, as no other worker is asked to. False if it has neither the thread nor room."""
        ...

    def hand_over(self, thread: str, after: Callable[[], None]) -> bool:
        """Leave `thread` to another worker, and call `after` when that one can have it. False if this one has
        not got the thread, or has other work in it."""
        ...

    def look(self, thread: str) -> None:
        """Look at `thread` if it is here."""
        ...


class Bus(Protocol):
    """Signals between the parts of one gateway, in one process or in several."""

    def wake(self, thread: str) -> None:
        """Have `thread`, an encoded ThreadKey, looked at for unfinished entries: by the worker that has it or
        that a hash chooses of those with room; by each where none is known."""
        ...

    def wake_holder(self, thread: str) -> None:
        """Have `thread` looked at by the process that has it: this one was woken, and has not."""
        ...

    def take_wakes(self, taker: WakeTaker) -> Unsubscribe:
        """Let `taker` be one of the workers that wakes are addressed to. A process has one."""
        ...

    @property
    def workers(self) -> int:
        """How many processes take wakes, as far as this one knows."""
        ...

    @property
    def room(self) -> int | None:
        """How many more turns they could run together, by what each said a second ago; None if that is not
        known, as in one process."""
        ...

    def control(self, owner: str, control: Control) -> None:
        """Send `control` to the process that holds its leases under the name `owner`, or to each of them for
        `EVERY_OWNER`."""
        ...

    def events(self, turn: LiveTurn) -> EventStream:
        """The stream for the events of `turn`, which begins now. It cuts off an earlier turn of the thread
        with a lower fence, and is dropped itself while one with a higher fence runs."""
        ...

    def outbox(self, account: AccountKey, row_id: int) -> None:
        """Have the replies of `account` sent: row `row_id` is durable."""
        ...

    def recorded(self, recorded: Recorded) -> None:
        """Have an entry of the log shown that no event and no reply reports."""
        ...

    def changed(self, book: str, key: str = "") -> None:
        """Have each process read `book` again, or what it has under `key`: the change is durable."""
        ...

    def on_wake(self, handler: OnWake) -> Unsubscribe:
        """Call `handler` for each wake."""
        ...

    def on_changed(self, handler: OnChanged) -> Unsubscribe:
        """Call `handler` for each change."""
        ...

    def on_control(self, owner: str, handler: OnControl) -> Unsubscribe:
        """Call `handler` for each control that is sent to `owner`."""
        ...

    def on_events(self, account: AccountKey, reader: EventReader) -> Unsubscribe:
        """Give `reader` the events of the account's turns that begin from now on. Raises ValueError if the
        account has a reader: two would show each answer twice."""
        ...

    def on_outbox(self, account: AccountKey, handler: OnOutbox) -> Unsubscribe:
        """Call `handler` when replies of the account are ready. Raises ValueError if it has a handler."""
        ...

    def on_recorded(self, account: AccountKey, handler: OnRecorded) -> Unsubscribe:
        """Call `handler` for entries of the account's threads. Raises ValueError if it has a handler."""
        ...

    @property
    def trouble(self) -> str:
        """What prevents signals between processes, one line; empty if nothing does. The store still works."""
        ...

    async def open(self) -> None:
        """Begin to exchange signals with other processes. Returns at once, before it is connected."""
        ...

    async def close(self) -> None:
        """End all subscriptions and streams; what is published afterwards is lost. May be called twice."""
        ...


def dropped(fence: int) -> EventStream:
    """A stream without a reader."""
    return EventStream(fence, _drop_sent, _drop_observed)


async def _drop_sent(event: PipelineEvent) -> None:
    """Drop an event: there is no reader."""


def _drop_observed(event: PipelineEvent) -> None:
    """Drop an event: there is no reader."""
