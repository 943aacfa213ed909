"""Write the shield's events to the audit of the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from functools import partial

from gateway.runtime.crash_labels import CrashLabels, Label
from gateway.storage.audit import AuditBook, NewAuditRecord
from pipeline.domain.clock import Clock
from pipeline.shield.audit_events import AuditEvent

_log = logging.getLogger(__name__)

_DECIDED: tuple[Label, Label] = ("audit-decided-before", "audit-decided-after")
_DONE: tuple[Label, Label] = ("audit-done-before", "audit-done-after")
_LABELS = {
    "action_evaluated": _DECIDED,
    "action_executed": _DONE,
    "action_failed": _DONE,
}


class StoreAudit:
    """Implements AuditTrail. The events of one call are one write."""

    def __init__(self, book: AuditBook, clock: Clock, crash_labels: CrashLabels | None = None) -> None:
        self._book = book
        self._clock = clock
        self._crash_labels = crash_labels or CrashLabels()

    def write(self, events: Sequence[AuditEvent]) -> Awaitable[None]:
        """See `AuditTrail.write`."""
        at = self._clock.now()
        records = [NewAuditRecord(type=event.type, details=event.details, at=at) for event in events]
        labels = next((_LABELS[event.type] for event in events if event.type in _LABELS), None)
        if labels is not None:
            self._crash_labels.reach(labels[0])
        writing = self._book.append(records)
        writing.add_done_callback(partial(self._ended, labels))
        return writing

    def _ended(self, labels: tuple[Label, Label] | None, writing: asyncio.Future[None]) -> None:
        """Log a failure that no caller may be waiting for."""
        if not writing.cancelled() and (error := writing.exception()) is not None:
            _log.error("an event could not be written to the audit", extra={"reason": str(error)})
        if labels is not None:
            self._crash_labels.reach(labels[1])
