"""The live events of one turn: what the record, the metrics and barge-in need of them, then the channel.

An exception of the channel's sender is logged and does not reach the turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from gateway.runtime.metrics import TurnStages
from gateway.storage.turn_questions import TurnQuestions
from pipeline.domain.events import LlmToken, NodeCompleted, NodeStarted, PipelineEvent
from pipeline.domain.ports import EventSender

_log = logging.getLogger(__name__)


class TurnEvents:
    """The `EventSender` of one turn. `observe` gets each event before the channel does, `stages` after it;
    of the answer's tokens both get only the first, and no event of a node."""

    def __init__(
        self,
        sender: EventSender,
        *,
        observe: Callable[[PipelineEvent], None],
        questions: TurnQuestions,
        stages: TurnStages,
    ) -> None:
        self._sender = sender
        self._observe = observe
        self._questions = questions
        self._stages = stages
        self._is_answering = False

    async def send_event(self, event: PipelineEvent) -> None:
        """Send `event` to the channel. Does not raise."""
        is_token = isinstance(event, LlmToken)
        is_noted = not ((is_token and self._is_answering) or isinstance(event, NodeStarted | NodeCompleted))
        if is_noted:
            self._is_answering = self._is_answering or is_token
            self._observe(event)
            self._questions.note(event)
        try:
            await self._sender.send_event(event)
        except Exception:  # noqa: BLE001 - a reader's failure is never the turn's
            _log.exception("a channel failed to show an event", extra={"event_type": event.type})
        if is_noted:
            self._stages.note(event)
