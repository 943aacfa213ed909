"""Ports of the vocabulary itself: where events go."""

from __future__ import annotations

from typing import Protocol

from pipeline.domain.events import PipelineEvent


class EventSender(Protocol):
    """Takes the events of one thread to whoever watches it.

    Must return quickly: a sender that writes to a slow socket queues, and may drop `llm_token`
    but never a terminal event. It raises nothing; a reader that went away is not the turn's problem.
    """

    async def send_event(self, event: PipelineEvent) -> None:
        """Hand one event over, in order."""
        ...
