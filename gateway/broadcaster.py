"""EventBroadcaster: a turn's live events to the channel that its thread belongs to.

The channel's own sender fans out to its readers and never blocks (its port says so); here a sender
that fails all the same is logged and does not disturb the turn.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from adapters.channel import Channel, ShowingChannel
from gateway.live import LiveReplies, Origin
from gateway.storage.ports import InboxEntry
from pipeline.domain.events import PipelineEvent
from pipeline.domain.ids import ThreadKey
from pipeline.domain.ports import EventSender

_log = logging.getLogger(__name__)


class EventBroadcaster:
    """Finds the way from a thread to its readers."""

    def __init__(self, channels: Mapping[tuple[str, str], Channel], live: LiveReplies) -> None:
        self._channels = channels
        self._live = live

    def sender_for(self, thread: ThreadKey, entry: InboxEntry) -> EventSender:
        """The sender of the turn of `entry` in `thread`. A thread whose channel is not running still works:
        its answer waits in the outbox."""
        adapter = self._channels.get((thread.channel, thread.account))
        if adapter is None:
            return _Nobody()
        if isinstance(adapter, ShowingChannel):
            return _Shielded(adapter.sender_for(thread))
        origin = Origin(
            message_id=entry.message_id,
            reply_handle=str(entry.body.get("reply_handle", "")),
            private=bool(entry.body.get("private", True)),
        )
        return _Shielded(self._live.sender_for(adapter, thread, origin))


class _Shielded:
    def __init__(self, sender: EventSender) -> None:
        self._sender = sender

    async def send_event(self, event: PipelineEvent) -> None:
        try:
            await self._sender.send_event(event)
        except Exception:  # noqa: BLE001 - a reader's failure is never the turn's
            _log.exception("a channel failed to show an event", extra={"event_type": event.type})


class _Nobody:
    async def send_event(self, event: PipelineEvent) -> None:  # noqa: ARG002 - nobody is there to read it
        return None
