"""What the bot's buttons carry, on every platform: a question's short name and an option's place, or Stop.

Not how a platform draws a button, or what an answer is worth: the inbox looks the name up.
"""

from __future__ import annotations

import re

from pipeline.domain.messages import button_handle

STOP = "stop"
"""The button that stops the answer at work."""
_ANSWER = re.compile(r"q:([0-9a-f]{16}):([0-9]{1,3})")


def answer_data(interaction_id: str, option: int) -> str:
    """What the button for the option at that place, from 0, carries: 25 ASCII characters at most."""
    return f"q:{button_handle(interaction_id)}:{option}"


def read_answer(data: str, *, digits: int = 2) -> tuple[str, int] | None:
    """The question's handle and the option's place, or None for what `answer_data` does not write for a
    platform whose messages hold no place of more than `digits` digits."""
    found = _ANSWER.fullmatch(data)
    return (found[1], int(found[2])) if found and len(found[2]) <= digits else None
