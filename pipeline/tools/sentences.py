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
    "repeat_for_me": ("Setting the schedule", "text"),
    "list_reminders": ("Listing the reminders", ""),
    "cancel_reminder": ("Cancelling a reminder", ""),
    "set_time_zone": ("Setting the time zone to", "zone"),
    "fetch_page": ("Reading the page", "url"),
    "search_web": ("Searching the web for", "query"),
    "run_agents": ("Starting sub-agents", ""),
    "run_command": ("Running the command", "command"),
    "run_script": ("Running the script", "script"),
    "send_command_file": ("Sending the file", "name"),
}
"""By tool: the sentence, and the argument at its end; empty for none."""


def sentence(tool: Tool, arguments: Mapping[str, Any], redactor: Redactor) -> str:
    """The sentence for one call, such as `Reading the file “notes.txt”`. Secrets are removed from the
    argument before it is cut."""
    return built_in_sentence(tool.name, arguments, redactor) if tool.built_in else using(tool.name)


def built_in_sentence(name: str, arguments: Mapping[str, Any], redactor: Redactor) -> str:
    """The same for a tool of this program, by its name."""
    known = SENTENCES.get(name)
    if known is None:
        return using(name)
    words, argument = known
    given = arguments.get(argument, "")
    value = redactor.line(" ".join(given) if isinstance(given, list | tuple) else str(given), _MOST_CHARS)
    return f"{words} “{value}”" if argument else words
