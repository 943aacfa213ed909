"""Describe a tool call in one sentence, for people who follow the work.

Each built-in tool has a sentence with its most informative argument; for other tools it has their name. All
arguments of a call are in the approval question and in the record of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pipeline.domain.tool_words import using
from pipeline.redaction.redactor import Redactor
from pipeline.tools.tool import Tool

_MOST_CHARS = 40
"""The most of the argument."""
SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "list_files": ("Listing the files", ""),
    "read_file": ("Reading the file", "path"),
    "send_file": ("Sending the file", "path"),
    "search_files": ("Searching the files for", "text"),
    "write_file": ("Writing the file", "path"),
    "append_file": ("Adding to the file", "path"),
    "delete_file": ("Deleting the file", "path"),
    "write_note": ("Writing the note", "title"),
    "read_notes": ("Reading the notes", ""),
    "search_notes": ("Searching the notes for", "text"),
    "delete_note": ("Deleting the note", "title"),
    "current_time": ("Looking up the time", ""),
    "calculate": ("Working out", "expression"),
    "about": ("Looking up this program's version", ""),
    "remind_me": ("Setting the reminder", "text"),
    "list_reminders": ("Listing the reminders", ""),
    "cancel_reminder": ("Cancelling a reminder", ""),
    "set_time_zone": ("Setting the time zone to", "zone"),
    "fetch_page": ("Reading the page", "url"),
    "search_web": ("Searching the web for", "query"),
    "run_agents": ("Starting sub-agents", ""),
}
"""By tool: the sentence, and the argument at its end; empty for none."""


def sentence(tool: Tool, arguments: Mapping[str, Any], redactor: Redactor) -> str:
    """The sentence for one call, such as `Reading the file “notes.txt”`. Secrets are removed from the
    argument before it is cut."""
    known = SENTENCES.get(tool.name) if tool.built_in else None
    if known is None:
        return using(tool.name)
    words, argument = known
    value = redactor.line(str(arguments.get(argument, "")), _MOST_CHARS) if argument else ""
    return f"{words} “{value}”" if value else words
