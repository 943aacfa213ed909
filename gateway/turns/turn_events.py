"""The live events of one turn: what the record, the metrics and barge-in need of them, then the channel.

An exception of the channel's sender is logged and does not reach the turn.
"""

from __future__ import annotations

import asyncio
import logging

from gateway.cluster.bus import EventStream
from gateway.cluster.signals import LiveTurn
from gateway.runtime.metrics import TurnStages
from gateway.storage.inbox_items import reply_handle_of
from gateway.storage.ports import InboxEntry, Lease
from gateway.storage.turn_questions import TurnQuestions
from pipeline.domain.events import (
    LlmToken,
    MessageJoined,
    NodeCompleted,
    NodeStarted,
    PipelineEvent,
    TranscriptPartial,
    TranscriptPending,
    TranscriptReady,
    TurnStarted,
)
from pipeline.domain.ids import ThreadKey

_UNNOTED = frozenset({NodeStarted, NodeCompleted})
_BEFORE_WORK = frozenset({TurnStarted, MessageJoined, TranscriptPending, TranscriptPartial, TranscriptReady})
"""What a turn shows before its answer is in progress."""

_log = logging.getLogger(__name__)


class TurnEvents:
    """The `EventSender` of one turn. The stream's `observe` gets each event before the channel does, `stages`
    after it; of the answer's tokens both get only the first, and no event of a node."""

    def __init__(
        self,
        stream: EventStream,
        *,
        questions: TurnQuestions,
        stages: TurnStages,
    ) -> None:
        self._stream = stream
        self._questions = questions
        self._stages = stages
        self._is_answering = False
        self.wants_nodes = stream.wants_nodes
        """See `NodeSender`."""
        self.has_shown = False
        """Whether a part of the answer, or of the work on it, was shown."""

    async def send_event(self, event: PipelineEvent) -> None:
        """Send `event` to the channel. Does not raise. Of a terminal one it returns when the channel had a
        pass of the loop to send it: what the turn does afterwards would otherwise delay it."""
        kind = type(event)
        is_noted = kind not in _UNNOTED and not (self._is_answering and kind is LlmToken)
        if is_noted:
            if kind is LlmToken:
                self._is_answering = True
            else:
                self._questions.note(event)
            self.has_shown = self.has_shown or kind not in _BEFORE_WORK
            self._stream.observe(event)
        try:
            await self._stream.send_event(event)
        except Exception:  # noqa: BLE001 - a reader's failure is never the turn's
            _log.exception("a channel failed to show an event", extra={"event_type": event.type})
        if is_noted:
            self._stages.note(event)
        if event.is_terminal:
            await asyncio.sleep(0)


def live_turn(lease: Lease, thread: ThreadKey, entry: InboxEntry) -> LiveTurn:
    """The turn as its channel needs it to show the events."""
    return LiveTurn(
        thread=thread,
        message_id=entry.message_id,
        fence=lease.fence,
        reply_handle=reply_handle_of(entry.item),
        private=entry.item.private,
    )
