"""The data that the bot's buttons carry on every platform: a question's handle and an option's index, or
Stop.

Not how a platform draws a button, or what an answer means: the inbox looks the handle up.
"""

from __future__ import annotations

import re

from pipeline.domain.messages import button_handle

STOP = "stop"
"""The button that stops the answer in progress."""
_ANSWER = re.compile(r"q:([0-9a-f]{16}):([0-9]{1,3})")


def answer_data(interaction_id: str, option: int) -> str:
    """The data of the button for an option, counted from 0: 25 ASCII characters at most."""
    return f"q:{button_handle(interaction_id)}:{option}"


def read_answer(data: str, *, digits: int = 2) -> tuple[str, int] | None:
    """The question's handle and the option's index; None for data that `answer_data` does not write for a
    platform whose messages have no index of more than `digits` digits."""
    found = _ANSWER.fullmatch(data)
    return (found[1], int(found[2])) if found and len(found[2]) <= digits else None
