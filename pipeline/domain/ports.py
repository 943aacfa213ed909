"""The port that receives a thread's events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from pipeline.domain.events import PipelineEvent


class EventSender(Protocol):
    """Sends the events of one thread to its clients.

    Must return quickly: a sender that writes to a slow socket queues, and may drop `llm_token` but never a
    terminal event. It raises nothing: a disconnected client must not affect the turn.
    """

    async def send_event(self, event: PipelineEvent) -> None:
        """Send one event, in order."""
        ...


@runtime_checkable
class NodeSender(EventSender, Protocol):
    """A sender that knows whether a client gets the events of the graph's nodes."""

    def wants_nodes(self) -> bool:
        """Whether `NodeStarted` and `NodeCompleted` reach a client now. If not, they need not be sent."""
        ...


def nodes_wanted_by(sender: object) -> Callable[[], bool]:
    """Says before each event of a node whether it is sent to `sender`."""
    wants: Callable[[], bool] = getattr(sender, "wants_nodes", always)
    return wants


def always() -> bool:
    """True."""
    return True
