"""A shield around in-memory books for tests, and an audit that can be read and made to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from gateway.storage.memory.shield import MemoryPermissions, MemoryTaints
from pipeline.domain.clock import Clock, ManualClock
from pipeline.domain.errors import StorageError
from pipeline.shield.audit_events import AuditEvent
from pipeline.shield.evaluator import Evaluator
from pipeline.shield.flow import FlowMode, Taints
from pipeline.shield.permissions import Permissions
from pipeline.shield.policy_book import PolicyBook
from pipeline.shield.ports import PolicySource, Scanner
from pipeline.shield.shield import Shield


class RecordedAudit:
    """An audit in a list. While `broken`, nothing can be written."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []
        self.broken = False

    def write(self, events: Sequence[AuditEvent]) -> Awaitable[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.broken:
            future.set_exception(StorageError("the disk is full"))
            future.exception()
        else:
            self.events.extend(events)
            future.set_result(None)
        return future

    def types(self) -> list[str]:
        """The types of the events, in order."""
        return [event.type for event in self.events]


def shield(
    *,
    clock: Clock | None = None,
    audit: RecordedAudit | None = None,
    policies: PolicySource | None = None,
    scanner: Scanner | None = None,
    flow_mode: FlowMode = "enforce",
    taints: MemoryTaints | None = None,
    evaluator: Evaluator | None = None,
) -> Shield:
    """A shield with the shipped policy, unless `policies` are given."""
    clock = clock or ManualClock()
    return Shield(
        policies=policies or PolicyBook(),
        audit=audit or RecordedAudit(),
        taints=Taints(taints or MemoryTaints(_always_open)),
        permissions=Permissions(MemoryPermissions(_always_open), clock),
        clock=clock,
        flow_mode=flow_mode,
        scanner=scanner,
        evaluator=evaluator,
    )


def open_taints() -> MemoryTaints:
    """A book of labels that is not a part of a store."""
    return MemoryTaints(_always_open)


def _always_open() -> None:
    """The books are never closed."""
