"""Find by rules the built-in tool that a message asks for, for a model that is too small to choose one.

English, German, French and Spanish. A message that no rule matches is conversation, and so are questions
about notes, files and reminders in general: each rule requires a clear verb, or the person's own things.
"""

from __future__ import annotations

from pipeline.llm.request_facts import page_asked, sum_asked, time_asked, zone_named
from pipeline.llm.request_files import file_changed, file_shown, notes_shown
from pipeline.llm.request_reminders import note, reminder, reminder_cancelled, reminders_shown
from pipeline.llm.request_words import Request, said

GROUPS = frozenset({"files", "web", "notes", "schedule", "system", "agents", "attachments"})
"""The groups of built-in tools, among which a small model does not choose."""
CHANGING = frozenset(
    {
        *("write_note", "delete_note", "remind_me", "repeat_for_me", "cancel_reminder", "set_time_zone"),
        *("write_file", "append_file", "delete_file"),
    }
)
"""Built-in tools that change something: called only when a rule matches, never by similarity."""
_MOST_CHARS = 8_000
_SHORT_CHARS = 2_000
"""A longer message is a note or conversation: other requests are short."""
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
"""The rules, in the order in which they are tried."""


def read_request(words: str) -> Request | None:
    """The tool and the arguments that `words` ask for; None for conversation."""
    if not words.strip() or len(words) > _MOST_CHARS:
        return None
    message = said(words)
    rules = _RULES if len(words) <= _SHORT_CHARS else (note,)
    return next((found for rule in rules if (found := rule(message)) is not None), None)
