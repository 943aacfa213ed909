"""Show the records of a turn to the channels that render its thread, as soon as each is durable."""

from __future__ import annotations

from gateway.storage.ports import InboxEntry
from gateway.turns.turn_hooks import OnRecorded
from pipeline.domain.clock import Clock
from pipeline.domain.files import StoredFile
from pipeline.domain.timeline import EntryRole, TimelineEntry


class ShownRecords:
    """Shows the records of the turn of one inbox entry."""

    def __init__(self, entry: InboxEntry, clock: Clock, on_recorded: OnRecorded) -> None:
        self._entry = entry
        self._clock = clock
        self._on_recorded = on_recorded

    def show(
        self,
        role: EntryRole,
        text: str,
        entry_id: int,
        *,
        spoken: bool = False,
        code: str = "",
        replaces: str = "",
        removed: str = "",
        files: tuple[StoredFile, ...] = (),
    ) -> None:
        """Show one record; see `TimelineEntry`. A person's words have the time at which they were sent."""
        self._on_recorded(
            TimelineEntry(
                entry_id=entry_id,
                message_id=self._entry.message_id,
                role=role,
                text=text,
                at=self._entry.received_at if role == "user" else self._clock.now(),
                spoken=spoken,
                code=code,
                replaces=replaces,
                removed=removed,
                files=files,
            )
        )
