"""EventBroadcaster: send a turn's live events to the channel of its thread.

The channel's own sender fans out to its readers and never blocks (its port requires that). An exception of
the sender is logged and does not reach the turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from adapters.channel import Channel, shows
from gateway.delivery.preview import LiveReplies, Origin
from gateway.storage.ports import InboxEntry
from pipeline.domain.events import LlmToken, PipelineEvent, TurnStarted, is_terminal
from pipeline.domain.ids import ThreadKey
from pipeline.domain.ports import EventSender

_log = logging.getLogger(__name__)


class EventBroadcaster:
    """Finds the event sender for a thread and tracks which threads have a running turn."""

    def __init__(self, channels: Mapping[tuple[str, str], Channel], live: LiveReplies) -> None:
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
        adapter = self._channels.get((thread.channel, thread.account))
        return "" if adapter is None else adapter.capabilities.copies

    def sender_for(self, thread: ThreadKey, entry: InboxEntry) -> EventSender:
        """The sender for the turn of `entry` in `thread`. If the thread's channel is not running, events are
        dropped and the answer waits in the outbox."""
        return _Shielded(self._reader_of(thread, entry), partial(self._observe, thread))

    def _reader_of(self, thread: ThreadKey, entry: InboxEntry) -> EventSender:
        adapter = self._channels.get((thread.channel, thread.account))
        if adapter is None:
            return _NoReaders()
        if shows(adapter):
            return adapter.sender_for(thread)
        origin = Origin(
            message_id=entry.message_id,
            reply_handle=str(entry.body.get("reply_handle", "")),
            private=bool(entry.body.get("private", True)),
        )
        return self._live.sender_for(adapter, thread, origin)

    def _observe(self, thread: ThreadKey, event: PipelineEvent) -> None:
        if isinstance(event, LlmToken):
            self._answering.add(thread)
        elif isinstance(event, TurnStarted) or is_terminal(event):
            self._answering.discard(thread)
            if isinstance(event, TurnStarted):
                self._running[thread] = event.message_id
            else:
                self._running.pop(thread, None)


class _Shielded:
    def __init__(self, sender: EventSender, observe: Callable[[PipelineEvent], None]) -> None:
        self._sender = sender
        self._observe = observe

    async def send_event(self, event: PipelineEvent) -> None:
        self._observe(event)
        try:
            await self._sender.send_event(event)
        except Exception:  # noqa: BLE001 - a reader's failure is never the turn's
            _log.exception("a channel failed to show an event", extra={"event_type": event.type})


class _NoReaders:
    async def send_event(self, event: PipelineEvent) -> None:  # noqa: ARG002 - there is no reader
        return None
