"""Show the records of the bot's lines to the channels that render its thread, as soon as each is durable."""

from __future__ import annotations

from gateway.storage.ports import InboxEntry
from gateway.turns.turn_hooks import OnRecorded
from pipeline.domain.clock import Clock
from pipeline.domain.files import StoredFile
from pipeline.domain.timeline import EntryRole, TimelineEntry


class ShownRecords:
    """Shows what the turn of one inbox entry says. Its messages are shown by `TurnMessages`."""

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
        code: str = "",
        removed: str = "",
        files: tuple[StoredFile, ...] = (),
    ) -> None:
        """Show one record; see `TimelineEntry`."""
        self._on_recorded(
            TimelineEntry(
                entry_id=entry_id,
                message_id=self._entry.message_id,
                role=role,
                text=text,
                at=self._clock.now(),
                code=code,
                removed=removed,
                files=files,
            )
        )
