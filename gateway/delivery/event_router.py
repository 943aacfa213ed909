"""EventBroadcaster: send a turn's live events to the channel of its thread.

The channel's own sender fans out to its readers and never blocks (its port requires that).
"""

from __future__ import annotations

from adapters.channel import shows
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.preview import LiveReplies, Origin
from gateway.storage.inbox_items import reply_handle_of
from gateway.storage.ports import InboxEntry
from pipeline.domain.events import LlmToken, PipelineEvent, TurnStarted
from pipeline.domain.ids import ThreadKey
from pipeline.domain.ports import EventSender


class EventBroadcaster:
    """Finds the event sender for a thread and tracks which threads have a running turn."""

    def __init__(self, channels: ChannelRegistry, live: LiveReplies) -> None:
        self._channels = channels
        self._live = live
        self._answering: set[ThreadKey] = set()
        self._running: dict[ThreadKey, str] = {}
        """The id of the message whose turn is running, by thread."""

    def is_answering(self, thread: str) -> bool:
        """Whether part of an answer has been shown in `thread` (encoded by `ThreadKey.encode`) and its turn
        has not ended."""
        return ThreadKey.decode(thread) in self._answering

    def running(self, thread: str) -> str:
        """The id of the message whose turn is running in `thread`, an encoded ThreadKey; or empty."""
        return self._running.get(ThreadKey.decode(thread), "")

    def copies(self, thread: ThreadKey) -> str:
        """The channel's notice about the copies that it keeps; empty if the channel is not running."""
        adapter = self._channels.of(thread)
        return "" if adapter is None else adapter.capabilities.copies

    def sender_for(self, thread: ThreadKey, entry: InboxEntry) -> EventSender:
        """The sender for the turn of `entry` in `thread`. If the thread's channel is not running, events are
        dropped and the answer waits in the outbox."""
        adapter = self._channels.of(thread)
        if adapter is None:
            return _NoReaders()
        if shows(adapter):
            return adapter.sender_for(thread)
        origin = Origin(
            message_id=entry.message_id,
            reply_handle=reply_handle_of(entry.item),
            private=entry.item.private,
        )
        return self._live.sender_for(adapter, thread, origin)

    def observe(self, thread: ThreadKey, event: PipelineEvent) -> None:
        """Track the turn of `thread` by its events; of an answer's tokens the first is enough."""
        if isinstance(event, LlmToken):
            self._answering.add(thread)
        elif isinstance(event, TurnStarted) or event.is_terminal:
            self._answering.discard(thread)
            if isinstance(event, TurnStarted):
                self._running[thread] = event.message_id
            else:
                self._running.pop(thread, None)


class _NoReaders:
    async def send_event(self, event: PipelineEvent) -> None:  # noqa: ARG002 - there is no reader
        return None
