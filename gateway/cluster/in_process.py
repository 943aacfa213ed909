"""The bus of a gateway in one process: a signal is a call of its subscriber, made before the publisher
continues. It has no queue, so nothing is merged, repeated or left out.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

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
    dropped,
)
from gateway.cluster.signals import Changed, Control, LiveTurn, Recorded
from pipeline.domain.ids import AccountKey, ThreadKey
from pipeline.domain.ports import nodes_wanted_by

_log = logging.getLogger(__name__)

_T = TypeVar("_T")


class InProcessBus:
    """The `Bus` of one process."""

    def __init__(self) -> None:
        self._wakes = _Handlers[str]()
        self._changes = _Handlers[Changed]()
        self._controls: dict[str, _Handlers[Control]] = {}
        self._readers: dict[AccountKey, EventReader] = {}
        self._outboxes: dict[AccountKey, OnOutbox] = {}
        self._recorded: dict[AccountKey, OnRecorded] = {}
        self._streams: dict[str, weakref.ref[EventStream]] = {}
        """The newest stream of each thread, for as long as its turn keeps it."""
        self._closed = False

    def wake(self, thread: str) -> None:
        """See `Bus.wake`."""
        self._wakes.call(thread)

    def wake_holder(self, thread: str) -> None:
        """See `Bus.wake_holder`."""
        self.wake(thread)

    def take_wakes(self, taker: WakeTaker) -> Unsubscribe:  # noqa: ARG002 - a wake is a call of its subscriber
        """See `Bus.take_wakes`."""
        return _nothing

    @property
    def workers(self) -> int:
        """See `Bus.workers`."""
        return 1

    @property
    def room(self) -> int | None:
        """See `Bus.room`."""
        return None

    def control(self, owner: str, control: Control) -> None:
        """See `Bus.control`."""
        handlers = self._controls.get(owner)
        if handlers is not None:
            handlers.call(control)

    def events(self, turn: LiveTurn) -> EventStream:
        """See `Bus.events`."""
        thread, fence = turn.thread, turn.fence
        reader, known = self._readers.get(thread.account_key), self._streams.get(thread.text)
        newest = None if known is None else known()
        if reader is None or (newest is not None and newest.fence > fence):
            return dropped(fence)
        try:
            sender = reader.sender_for(turn)
        except Exception:  # noqa: BLE001 - a channel's failure is never the turn's
            _log.exception("a channel cannot show a turn", extra={"thread_key": thread.encode()})
            return dropped(fence)
        if newest is not None and newest.fence < fence:
            newest.cut_off()
        stream = EventStream(
            fence, sender.send_event, partial(reader.observe, thread), nodes_wanted_by(sender)
        )
        self._streams[thread.text] = weakref.ref(stream, partial(self._forget, thread.text))
        return stream

    def _forget(self, thread: str, gone: weakref.ref[EventStream]) -> None:
        """Forget a stream that no turn keeps, unless a newer one has its place."""
        if self._streams.get(thread) is gone:
            del self._streams[thread]

    def outbox(self, account: AccountKey, row_id: int) -> None:
        """See `Bus.outbox`."""
        handler = self._outboxes.get(account)
        if handler is None:
            return
        try:
            handler(account, row_id)
        except Exception:  # noqa: BLE001 - a subscriber's failure is never the publisher's
            _log.exception("a signal of the outbox was not handled", extra={"row": row_id})

    def recorded(self, recorded: Recorded) -> None:
        """See `Bus.recorded`."""
        handler = self._recorded.get(recorded.thread.account_key)
        if handler is None:
            return
        try:
            handler(recorded)
        except Exception:  # noqa: BLE001 - a subscriber's failure is never the publisher's
            _log.exception("an entry was not shown", extra={"thread_key": recorded.thread.encode()})

    def changed(self, book: str, key: str = "") -> None:
        """See `Bus.changed`."""
        self._changes.call(Changed(book=book, key=key))

    def on_wake(self, handler: OnWake) -> Unsubscribe:
        """See `Bus.on_wake`."""
        return _nothing if self._closed else self._wakes.add(handler)

    def on_changed(self, handler: OnChanged) -> Unsubscribe:
        """See `Bus.on_changed`."""
        if self._closed:
            return _nothing
        return self._changes.add(lambda changed: handler(changed.book, changed.key))

    def on_control(self, owner: str, handler: OnControl) -> Unsubscribe:
        """See `Bus.on_control`."""
        if self._closed:
            return _nothing
        return self._controls.setdefault(owner, _Handlers[Control]()).add(handler)

    def on_events(self, account: AccountKey, reader: EventReader) -> Unsubscribe:
        """See `Bus.on_events`."""
        if self._closed:
            return _nothing
        _take(self._readers, account, reader, "a reader of its events")
        return _once(partial(self._end_reader, account))

    def on_outbox(self, account: AccountKey, handler: OnOutbox) -> Unsubscribe:
        """See `Bus.on_outbox`."""
        if self._closed:
            return _nothing
        _take(self._outboxes, account, handler, "a handler of its outbox")
        return _once(lambda: self._outboxes.pop(account, None))

    def on_recorded(self, account: AccountKey, handler: OnRecorded) -> Unsubscribe:
        """See `Bus.on_recorded`."""
        if self._closed:
            return _nothing
        _take(self._recorded, account, handler, "a handler of its entries")
        return _once(lambda: self._recorded.pop(account, None))

    @property
    def trouble(self) -> str:
        """See `Bus.trouble`."""
        return ""

    async def open(self) -> None:
        """See `Bus.open`."""

    async def close(self) -> None:
        """See `Bus.close`."""
        self._closed = True
        for account in tuple(self._readers):
            self._end_reader(account)
        self._outboxes.clear()
        self._recorded.clear()
        self._wakes.clear()
        self._changes.clear()
        for handlers in self._controls.values():
            handlers.clear()

    def _end_reader(self, account: AccountKey) -> None:
        self._readers.pop(account, None)
        for thread, known in tuple(self._streams.items()):
            if ThreadKey.decode(thread).account_key == account and (stream := known()) is not None:
                stream.cut_off()


class _Handlers(Generic[_T]):
    """The handlers of one signal, in the order of their subscription."""

    def __init__(self) -> None:
        self._handlers: dict[object, Callable[[_T], None]] = {}

    def add(self, handler: Callable[[_T], None]) -> Unsubscribe:
        # A key for each subscription, because the same handler may subscribe twice.
        key = object()
        self._handlers[key] = handler
        return _once(partial(self._handlers.pop, key, None))

    def call(self, signal: _T) -> None:
        """Call each; one that raises is logged."""
        for key, handler in tuple(self._handlers.items()):
            # A handler may end the subscription of another.
            if key not in self._handlers:
                continue
            try:
                handler(signal)
            except Exception:  # noqa: BLE001 - a subscriber's failure is never the publisher's
                _log.exception("a signal was not handled", extra={"signal": type(signal).__name__})

    def clear(self) -> None:
        self._handlers.clear()


def _take(subscribers: dict[AccountKey, _T], account: AccountKey, subscriber: _T, what: str) -> None:
    if account in subscribers:
        raise ValueError(f"{account[0]}:{account[1]} has {what} already; an account has one")
    subscribers[account] = subscriber


def _once(end: Callable[[], object]) -> Unsubscribe:
    """`end`, called at most once: the account may have a later subscriber by then."""
    left = [end]

    def unsubscribe() -> None:
        if left:
            left.pop()()

    return unsubscribe


def _nothing() -> None:
    """End nothing: the bus is closed."""
