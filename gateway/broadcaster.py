"""EventBroadcaster: a thread's live events to its channel, and to whoever else watches.

The channel's own sender queues per reader and never blocks (its port says so); here a watcher that
fails is logged and does not disturb the turn or the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from adapters.channel import ChannelAdapter
from pipeline.domain.events import PipelineEvent
from pipeline.domain.ids import ThreadKey
from pipeline.domain.ports import EventSender

_log = logging.getLogger(__name__)


class EventBroadcaster:
    """Fans events out."""

    def __init__(self, channels: Mapping[tuple[str, str], ChannelAdapter]) -> None:
        self._channels = channels
        self._watchers: list[EventSender] = []

    def watch(self, watcher: EventSender) -> Callable[[], None]:
        """Also send every thread's events to `watcher`; the returned function ends that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def sender_for(self, thread: ThreadKey) -> EventSender:
        """The sender of one turn in `thread`. A thread whose channel is not running still works: its
        answer waits in the outbox."""
        adapter = self._channels.get((thread.channel, thread.account))
        first = (adapter.sender_for(thread),) if adapter is not None else ()
        return _FanOut((*first, *self._watchers))


class _FanOut:
    def __init__(self, senders: tuple[EventSender, ...]) -> None:
        self._senders = senders

    async def send_event(self, event: PipelineEvent) -> None:
        for sender in self._senders:
            try:
                await sender.send_event(event)
            except Exception:  # noqa: BLE001 - a reader's failure is never the turn's
                _log.exception("a watcher failed", extra={"event": event.type})
