"""Format a conversation as lines of text, as material for a summary.

Each message is one line, whatever its content, so that its text cannot pass for another speaker's. Not the
model's view of the conversation (`view`), and not the stored form.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import PastTurn
from pipeline.history.stale_results import brief

MAX_CHARS = 12_000
"""The most of a transcript."""
_NAMES = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "Note"}
_CUT = " […]"
_LEAST = 40
"""The fewest characters to which a message is cut: fewer are not worth reading."""


def transcript(turns: Sequence[PastTurn], max_chars: int = MAX_CHARS) -> str:
    """The turns in at most `max_chars` characters. Long messages are cut first, so that the short ones stay
    whole; where that is not enough, the oldest messages are left out."""
    lines = [line for turn in turns for message in brief(turn).messages if (line := _line(message))]
    allowed = max(_LEAST, _water_level([len(line) + 1 for line in lines], max_chars) - 1)
    lines = [line if len(line) <= allowed else line[: allowed - len(_CUT)] + _CUT for line in lines]
    first, room = len(lines), max_chars + 1
    while first and (room := room - len(lines[first - 1]) - 1) >= 0:
        first -= 1
    return "\n".join(lines[first:])


def _line(message: ChatMessage) -> str:
    """The message as one line; empty for a message without text."""
    words = " ".join(message.content.split())
    if message.tool_calls:
        words = f"{words} (uses {', '.join(call.name for call in message.tool_calls)})".lstrip()
    return f"{_NAMES[message.role]}: {words}" if words else ""


def _water_level(sizes: Sequence[int], room: int) -> int:
    """The largest size to which all of `sizes` can be cut so that they fit into `room`."""
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        level = room // (len(ordered) - index)
        if size > level:
            return level
        room -= size
    return ordered[-1] if ordered else room
