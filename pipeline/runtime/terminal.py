"""Ensure exactly one terminal event per message, between the pipeline and a sender."""

from __future__ import annotations

from pipeline.domain.errors import GraphError
from pipeline.domain.events import PipelineEvent, is_terminal
from pipeline.domain.ports import EventSender


class TerminalGuard:
    """Forwards events, and refuses any event after the terminal one."""

    def __init__(self, sender: EventSender) -> None:
        self._sender = sender
        self._ended = False

    async def send_event(self, event: PipelineEvent) -> None:
        """Send `event`. Raises GraphError if the message has already ended."""
        if self._ended:
            raise GraphError(f"event {event.type} after the terminal event of {event.message_id}")
        if is_terminal(event):
            self._ended = True
        await self._sender.send_event(event)
