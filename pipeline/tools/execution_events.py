"""The events of one execution in the audit."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from pipeline.shield.audit_events import EventType, event_of
from pipeline.shield.proposal import Proposal
from pipeline.shield.shield import Shield


class ExecutionEvents:
    """The audit of one execution. An event is queued at once, before the record that the action is done; the
    wait for the disk is separate, because an effect that was done must not fail by it."""

    def __init__(self, shield: Shield, proposal: Proposal) -> None:
        self._shield = shield
        self._proposal = proposal
        self._writes: list[Awaitable[None]] = []
        self.has_end = False

    def add(self, type_: EventType, **details: str | bool) -> None:
        """Queue an event."""
        event = event_of(type_, self._proposal, **details)
        self._writes.append(self._shield.record(self._proposal, [event]))

    def add_end(self, kept: Mapping[str, Any], **details: str | bool) -> None:
        """Queue the event about what `Execution.run` has returned."""
        self.has_end = True
        if kept.get("stopped"):
            self.add("action_blocked", reason=kept["stopped"], **details)
        else:
            self.add("action_executed" if kept["success"] else "action_failed", **details)

    async def written(self) -> None:
        """Return when all events are durable. Raises StorageError."""
        for write in self._writes:
            await write
