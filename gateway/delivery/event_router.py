"""EventBroadcaster: show a turn's live events on the channel of its thread. It reads them from the bus.

The channel's own sender fans out to its readers and never blocks (its port requires that).
"""

from __future__ import annotations

from adapters.channel import Channel, shows
from gateway.channels.registry import ChannelRegistry
from gateway.cluster.bus import EventReader
from gateway.cluster.signals import LiveTurn
from gateway.delivery.origin import Origin
from gateway.delivery.preview import LiveReplies
from pipeline.domain.events import LlmToken, PipelineEvent, TurnStarted
from pipeline.domain.ids import ThreadKey
from pipeline.domain.ports import EventSender


class EventBroadcaster:
    """Shows the turns of each channel and tracks which threads have a running turn."""

    def __init__(self, channels: ChannelRegistry, live: LiveReplies) -> None:
        self._channels = channels
        self._live = live
        self._answering: set[str] = set()
        """Encoded threads. By their text: the hash of a key object is computed each time."""
        self._running: dict[str, str] = {}
        """The id of the message whose turn is running, by encoded thread."""

    def is_answering(self, thread: str) -> bool:
        """Whether part of an answer has been shown in `thread` (encoded by `ThreadKey.encode`) and its turn
        has not ended."""
        return thread in self._answering

    def running(self, thread: str) -> str:
        """The id of the message whose turn is running in `thread`, an encoded ThreadKey; or empty."""
        return self._running.get(thread, "")

    def copies(self, thread: ThreadKey) -> str:
        """The channel's notice about the copies that it keeps; empty if the channel is not running."""
        adapter = self._channels.of(thread)
        return "" if adapter is None else adapter.capabilities.copies

    def reader_for(self, channel: Channel) -> EventReader:
        """The reader of the events of the channel's account."""
        return _ChannelEvents(self, channel, self._live)

    def observe(self, thread: ThreadKey, event: PipelineEvent) -> None:
        """Track the turn of `thread` by its events; of an answer's tokens the first is enough."""
        if isinstance(event, LlmToken):
            self._answering.add(thread.text)
        elif isinstance(event, TurnStarted) or event.is_terminal:
            self._answering.discard(thread.text)
            if isinstance(event, TurnStarted):
                self._running[thread.text] = event.message_id
            else:
                self._running.pop(thread.text, None)


class _ChannelEvents:
    """The `EventReader` of one channel."""

    def __init__(self, broadcaster: EventBroadcaster, channel: Channel, live: LiveReplies) -> None:
        self._channel = channel
        self._live = live
        self.observe = broadcaster.observe

    def sender_for(self, turn: LiveTurn) -> EventSender:
        """See `EventReader.sender_for`."""
        if shows(self._channel):
            return self._channel.sender_for(turn.thread)
        origin = Origin(message_id=turn.message_id, reply_handle=turn.reply_handle, private=turn.private)
        return self._live.sender_for(self._channel, turn.thread, origin)
