"""Replies on channels that show what is on record: they count as sent with the commit of their turn."""

from __future__ import annotations

import asyncio
import logging

from adapters.channel import Channel, OutboundReply
from adapters.record_showing import shows_record
from gateway.channels.registry import ChannelRegistry
from gateway.delivery.chat_queue import ChatQueues
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.metrics import Telemetry
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)


class RecordedReplies:
    """Shows replies whose rows began as sent to those who look now."""

    def __init__(
        self, channels: ChannelRegistry, queues: ChatQueues, telemetry: Telemetry, crash_labels: CrashLabels
    ) -> None:
        self._channels = channels
        self._queues = queues
        self._telemetry = telemetry
        self._crash_labels = crash_labels

    def count_as_sent(self, adapter: Channel, thread: ThreadKey) -> bool:
        """Whether a reply that is recorded now counts as sent. Not behind replies that wait in the chat's
        queue, which it would overtake."""
        return shows_record(adapter) and self._queues.is_empty(thread)

    def show_soon(self, reply: OutboundReply) -> None:
        """Show a recorded reply after what the caller is about to send: the end of its turn."""
        asyncio.get_running_loop().call_soon(self._show, reply)

    def _show(self, reply: OutboundReply) -> None:
        adapter = self._channels.of(reply.thread)
        if adapter is None or not shows_record(adapter):
            return
        self._crash_labels.reach("send-before")
        try:
            adapter.show_recorded(reply)
        except Exception:  # noqa: BLE001 - a page that is loaded later shows it
            _log.exception("a recorded reply is not shown yet", extra={"thread_key": reply.thread.encode()})
        self._crash_labels.reach("send-after")
        self._telemetry.delivered("sent")
