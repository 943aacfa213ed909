"""Rooms, where several people speak: who said a line, and what was said before the bot was spoken to."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.domain.visible import is_seen

MAX_NAME_CHARS = 64
"""Of a name as the model reads it; its owner chose it."""
MAX_LINE_CHARS = 600
_UNNAMEABLE = str.maketrans({"[": "(", "]": ")", ":": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomLine:
    """One message of a room, whoever wrote it. Not the bot's to obey."""

    text: str
    name: str = ""
    """As people see its author; chosen by the author."""
    author: str = ""
    """The platform's id of the author."""
    at: float = 0.0
    """Unix seconds; 0 where it is not known."""
    own: bool = False
    """The bot wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomTalk:
    """What was said in a room before a message, oldest first."""

    lines: tuple[RoomLine, ...] = ()
    unread: str = ""
    """Why the platform did not let it be read; empty where it was, or where nobody asked."""


def line_name(name: str, author: str = "") -> str:
    """A name that can stand before a line and be nothing else: on one line, without brackets and colons, at
    most 64 characters; the author's id where nothing is left of it."""
    seen = (" " if one.isspace() else one for one in name if is_seen(one))
    words = " ".join("".join(seen).translate(_UNNAMEABLE).split())
    return words[:MAX_NAME_CHARS].rstrip() or author


def said_by(text: str, name: str) -> str:
    """The words as the model reads them in a room: behind their author's name, or below it where they begin
    with a quote or a mark, which stand at the beginning of a line. Without a name, the words."""
    if not name:
        return text
    return f"{name}:\n{text}" if text.startswith((">", "[")) else f"{name}: {text}"
