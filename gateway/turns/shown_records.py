"""Show the records of the bot's lines to the channels that render its thread, as soon as each is durable."""

from __future__ import annotations

from gateway.storage.ports import InboxEntry
from gateway.turns.turn_hooks import OnRecorded
from pipeline.domain.clock import Clock
from pipeline.domain.files import StoredFile
from pipeline.domain.timeline import EntryRole, TimelineEntry


def show_record(
    entry: InboxEntry,
    clock: Clock,
    on_recorded: OnRecorded,
    role: EntryRole,
    text: str,
    entry_id: int,
    *,
    code: str = "",
    removed: str = "",
    files: tuple[StoredFile, ...] = (),
) -> None:
    """Show one record of what the turn of `entry` says; see `TimelineEntry`. The messages of the turn are
    shown by `TurnMessages`."""
    on_recorded(
        TimelineEntry(
            entry_id=entry_id,
            message_id=entry.message_id,
            role=role,
            text=text,
            at=clock.now(),
            code=code,
            removed=removed,
            files=files,
        )
    )
