"""Draw the buttons of questions as blocks of type `actions`, and the Stop button. Pure.

What a button carries is in `adapters/button_data.py`; a press is read in `adapters/slack/inbound.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adapters.button_data import STOP, answer_data, read_answer
from adapters.channel import Outgoing
from adapters.formatting.visible import visible
from adapters.json_fields import mapping, mappings
from pipeline.domain.events import ApprovalRequired

_LABEL_CHARS = 75
_BUTTONS_PER_BLOCK = 25
_STOP_LABEL = "Stop"
_NO_LABEL = "…"
Block = dict[str, Any]


def button_rows(outgoing: Outgoing, *, available: int) -> list[Block]:
    """The blocks for the questions of `outgoing`, and Stop while it is unfinished: `available` at most."""
    rows = [row for question in outgoing.questions for row in _question_rows(question)]
    if outgoing.unfinished:
        rows.append(_row([_button(_STOP_LABEL, STOP)]))
    return rows[:available]


def asks(block: Block, handle: str) -> bool:
    """Whether `block` has a button of the question with that handle."""
    answers = [
        read_answer(str(button.get("action_id")), digits=3) for button in mappings(block.get("elements"))
    ]
    return any(answer is not None and answer[0] == handle for answer in answers)


def pressed_label(payload: Mapping[str, Any]) -> str:
    """The text of the pressed button."""
    for action in mappings(payload.get("actions")):
        label = mapping(action.get("text")).get("text")
        if isinstance(label, str):
            return label[:_LABEL_CHARS]
    return ""


def _question_rows(question: ApprovalRequired) -> Iterator[Block]:
    buttons = [
        _button(option, answer_data(question.interaction_id, index))
        for index, option in enumerate(question.options)
    ]
    for start in range(0, len(buttons), _BUTTONS_PER_BLOCK):
        yield _row(buttons[start : start + _BUTTONS_PER_BLOCK])


def _row(buttons: list[Block]) -> Block:
    return {"type": "actions", "elements": buttons}


def _button(label: str, action: str) -> Block:
    words = visible(label).strip() or _NO_LABEL
    if len(words) > _LABEL_CHARS:
        words = words[: _LABEL_CHARS - 1] + "…"
    return {
        "type": "button",
        "text": {"type": "plain_text", "text": words, "emoji": False},
        "action_id": action,
    }
