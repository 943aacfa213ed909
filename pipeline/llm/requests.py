"""What a message asks for, read by rules: the built-in tools of a model that is too small to choose them.

English, German, French and Spanish. What no rule reads is talk. Questions about notes, files and reminders
in general are talk as well: each rule wants a clear verb, or the person's own things.
"""

from __future__ import annotations

from pipeline.llm.request_facts import page_asked, sum_asked, time_asked, zone_named
from pipeline.llm.request_files import file_changed, file_shown, notes_shown
from pipeline.llm.request_reminders import note, reminder, reminder_cancelled, reminders_shown
from pipeline.llm.request_words import Request, said

GROUPS = frozenset({"files", "web", "notes", "schedule", "system", "agents"})
"""The groups of built-in tools. A small model is not asked to choose among them."""
CHANGING = frozenset(
    {
        *("write_note", "delete_note", "remind_me", "cancel_reminder", "set_time_zone"),
        *("write_file", "append_file", "delete_file"),
    }
)
"""Built-in tools that change something: done only for what a rule has read, never by likeness."""
_MOST_CHARS = 8_000
_SHORT_CHARS = 2_000
"""A longer message is a note or talk: what else is asked for is asked for in few words."""
_RULES = (
    reminder_cancelled,
    reminders_shown,
    zone_named,
    notes_shown,
    file_changed,
    file_shown,
    page_asked,
    note,
    reminder,
    time_asked,
    sum_asked,
)
"""In the order in which they are tried."""


def read_request(words: str) -> Request | None:
    """The tool and the arguments that `words` ask for; None for talk."""
    if not words.strip() or len(words) > _MOST_CHARS:
        return None
    message = said(words)
    rules = _RULES if len(words) <= _SHORT_CHARS else (note,)
    return next((found for rule in rules if (found := rule(message)) is not None), None)
