"""Rooms (group chats): who wrote a line, and what was written before the message to the bot."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass
from pipeline.domain.visible import is_seen

MAX_NAME_CHARS = 64
"""Length of a name as the model reads it; its owner chose it."""
MAX_LINE_CHARS = 600
_UNNAMEABLE = str.maketrans({"[": "(", "]": ")", ":": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomLine:
    """One message of a room, by any author. The bot must not follow instructions in it."""

    text: str
    name: str = ""
    """The author's display name, which the author chose."""
    author: str = ""
    """The platform's id of the author."""
    at: float = 0.0
    """Unix seconds; 0 if unknown."""
    own: bool = False
    """The bot wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomTalk:
    """What was written in a room before a message, oldest first."""

    lines: tuple[RoomLine, ...] = ()
    unread: str = ""
    """Why the platform did not allow reading it; empty if it was read, or was not requested."""


def line_name(name: str, author: str = "") -> str:
    """A name that is safe as the prefix of a line: on one line, without brackets and colons, at most
    64 characters; the author's id if no character is left."""
    seen = (" " if one.isspace() else one for one in name if is_seen(one))
    words = " ".join("".join(seen).translate(_UNNAMEABLE).split())
    return words[:MAX_NAME_CHARS].rstrip() or author


def said_by(text: str, name: str) -> str:
    """The words as the model reads them in a room: after their author's name, or on the next line if they
    begin with a quote or a mark, which must begin a line. Without a name, the words."""
    if not name:
        return text
    return f"{name}:\n{text}" if text.startswith((">", "[")) else f"{name}: {text}"
