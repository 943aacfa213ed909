"""The types of actions: what a tool does, the least tier that judges it, and where its data goes.

Rules name types and not tools, so that a rule covers every tool that does the same. What a tool of an MCP
server or of a plug-in declares cannot be relied on: its type is `unknown`, which counts as sending data out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

ActionType = Literal[
    "read_file",
    "send_file",
    "write_file",
    "delete_file",
    "read_note",
    "write_note",
    "delete_note",
    "read_attachment",
    "schedule",
    "repeat",
    "read_schedule",
    "fetch_url",
    "search_web",
    "message",
    "command",
    "command_read",
    "compute",
    "delegate",
    "read",
    "own_change",
    "unknown",
]
ACTION_TYPES: Final[tuple[ActionType, ...]] = get_args(ActionType)

Sink = Literal["people", "web", "mcp", "commands", "memory", "files"]
"""Where an action's data goes. `people` are other chats; `mcp` is every tool of others."""
SINKS: Final[tuple[Sink, ...]] = get_args(Sink)
EXTERNAL: Final[frozenset[Sink]] = frozenset({"people", "web", "mcp"})
"""The sinks outside this machine, or read by others."""

BUILT_IN: Final[Mapping[str, ActionType]] = {
    "list_files": "read_file",
    "read_file": "read_file",
    "search_files": "read_file",
    "send_file": "send_file",
    "write_file": "write_file",
    "append_file": "write_file",
    "delete_file": "delete_file",
    "write_note": "write_note",
    "read_notes": "read_note",
    "search_notes": "read_note",
    "delete_note": "delete_note",
    "read_attachment": "read_attachment",
    "remind_me": "schedule",
    "repeat_for_me": "repeat",
    "watch_for_me": "repeat",
    "cancel_reminder": "schedule",
    "set_time_zone": "schedule",
    "list_reminders": "read_schedule",
    "fetch_page": "fetch_url",
    "search_web": "search_web",
    "current_time": "compute",
    "calculate": "compute",
    "about": "compute",
    "run_agents": "delegate",
    "run_command": "command",
    "run_script": "command",
    "send_command_file": "send_file",
}
"""The types of this program's own tools, by name."""

LEAST_TIER: Final[Mapping[ActionType, int]] = {
    "write_file": 1,
    "delete_file": 1,
    "write_note": 1,
    "delete_note": 1,
    "schedule": 1,
    "repeat": 1,
    "fetch_url": 1,
    "search_web": 1,
    "message": 1,
    "command": 1,
    "own_change": 1,
    "unknown": 3,
}
"""The least tier of a type; 0 for those that are not named."""

SINK_OF: Final[Mapping[ActionType, Sink]] = {
    "message": "people",
    "fetch_url": "web",
    "search_web": "web",
    "unknown": "mcp",
    "command": "commands",
    "write_note": "memory",
    "delete_note": "memory",
    "schedule": "memory",
    "repeat": "memory",
    "own_change": "memory",
    "write_file": "files",
    "delete_file": "files",
}
"""The sink of a type; the other types send data nowhere but to the conversation that asked."""

PRIVATE_READS: Final[frozenset[ActionType]] = frozenset(
    {"read_file", "send_file", "read_note", "read_attachment", "read_schedule", "command_read"}
)
"""The types that read what belongs to the turn's owner."""


def type_of(
    name: str, *, built_in: bool, declared: ActionType | None, reads_only: bool, own_only: bool
) -> ActionType:
    """The type of a tool's actions. `declared` is what a tool of this program says about itself; it does not
    count for tools of others."""
    if not built_in:
        return "unknown"
    if declared is not None:
        return declared
    if name in BUILT_IN:
        return BUILT_IN[name]
    if reads_only:
        return "read"
    return "own_change" if own_only else "unknown"
