"""What a person sees when opening a thread: its durable entries, oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.domain.events import Thought

EntryRole = Literal["user", "assistant", "notice", "error", "session", "title"]
"""`title`: what the session is about, from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One visible, durable entry of a thread."""

    entry_id: int
    """Grows within a thread; 0 for a message that is accepted but still waits in the queue."""
    message_id: str
    role: EntryRole
    text: str
    at: float
    """Unix seconds."""
    spoken: bool = False
    """The text is a transcript of a voice note."""
    code: str = ""
    """For role "error": the error's code. For role "session": `otr` where it is off the record."""
    thoughts: tuple[Thought, ...] = ()
    """For role "assistant": how the answer came about."""
