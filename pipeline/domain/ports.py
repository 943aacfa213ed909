"""The port that receives a thread's events."""

from __future__ import annotations

from typing import Protocol

from pipeline.domain.events import PipelineEvent


class EventSender(Protocol):
    """Sends the events of one thread to its clients.

    Must return quickly: a sender that writes to a slow socket queues, and may drop `llm_token` but never a
    terminal event. It raises nothing: a disconnected client must not affect the turn.
    """

    async def send_event(self, event: PipelineEvent) -> None:
        """Send one event, in order."""
        ...
