"""A conversation as lines for somebody who is to sum it up.

One message is one line, whatever is in it: nobody's words can pass for another speaker's. Not the
model's view of the conversation (`view`), and not what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import PastTurn
from pipeline.history.stale_results import brief

MAX_CHARS = 12_000
"""Of a transcript (seed 0.2)."""
_NAMES = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "Note"}
_CUT = " […]"
_LEAST = 40
"""Characters of a message below which cutting it leaves nothing worth reading."""


def transcript(turns: Sequence[PastTurn], max_chars: int = MAX_CHARS) -> str:
    """The turns in at most `max_chars` characters. Long messages are cut first, so that no short one is
    lost to them; where even that does not do, the oldest are left out."""
    lines = [line for turn in turns for message in brief(turn).messages if (line := _line(message))]
    allowed = max(_LEAST, _water_level([len(line) + 1 for line in lines], max_chars) - 1)
    lines = [line if len(line) <= allowed else line[: allowed - len(_CUT)] + _CUT for line in lines]
    first, room = len(lines), max_chars + 1
    while first and (room := room - len(lines[first - 1]) - 1) >= 0:
        first -= 1
    return "\n".join(lines[first:])


def _line(message: ChatMessage) -> str:
    """Empty for a message without words."""
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
