"""Draw the buttons of questions as rows of components, and the Stop button. Pure.

What a button carries is in `adapters/button_data.py`; a press is read in `adapters/discord/inbound.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from adapters.button_data import STOP, answer_data
from adapters.formatting.visible import visible
from adapters.json_fields import mappings
from pipeline.domain.events import ApprovalRequired

_LABEL_CHARS = 80
_ROWS = 5
_BUTTONS = 5
_ROW, _BUTTON = 1, 2
_GREY, _RED = 2, 4


def stop_row() -> dict[str, Any]:
    """The button that stops the answer in progress."""
    return _row([_button("Stop", STOP, _RED)])


def question_rows(questions: Sequence[ApprovalRequired]) -> list[dict[str, Any]]:
    """Buttons for the questions, a row or more for each; questions that do not fit are answered by typing."""
    rows: list[dict[str, Any]] = []
    for question in questions:
        buttons = iter(
            [
                _button(
                    _label(question, option, alone=len(questions) == 1),
                    answer_data(question.interaction_id, place),
                    _GREY,
                )
                for place, option in enumerate(question.options)
            ]
        )
        while row := list(islice(buttons, _BUTTONS)):
            rows.append(_row(row))
    return rows[:_ROWS]


def button_ids(rows: object) -> list[object]:
    """The data of every button in the rows of a message."""
    return [
        button.get("custom_id")
        for row in mappings(rows, most=_ROWS)
        for button in mappings(row.get("components"), most=_BUTTONS)
    ]


def _label(question: ApprovalRequired, option: str, *, alone: bool) -> str:
    words = " ".join(visible(option if alone else f"{question.tool_name}: {option}").split())
    if len(words) > _LABEL_CHARS:
        words = words[: _LABEL_CHARS - 1] + "…"
    return words or "?"


def _row(buttons: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": _ROW, "components": buttons}


def _button(label: str, custom_id: str, style: int) -> dict[str, Any]:
    return {"type": _BUTTON, "style": style, "label": label, "custom_id": custom_id}
