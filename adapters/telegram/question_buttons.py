"""Draw the buttons of questions as an inline keyboard, and the Stop button. Pure.

What a button carries is in `adapters/button_data.py`; a press is read in `adapters/telegram/inbound.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.button_data import STOP, answer_data
from adapters.formatting.visible import visible
from pipeline.domain.events import ApprovalRequired

STOP_KEYBOARD: Mapping[str, Any] = {"inline_keyboard": [[{"text": "Stop", "callback_data": STOP}]]}
_MAX_LABEL = 64
_MAX_OPTIONS = 20
_MAX_QUESTIONS = 5
"""A keyboard fits a hundred buttons; further questions can be answered by typing."""
_ONE_ROW_CHARS = 30
_ONE_ROW_BUTTONS = 8
"""The most buttons that Telegram shows in one row."""


def question_keyboard(questions: Sequence[ApprovalRequired]) -> dict[str, Any]:
    """The keyboard for the questions: one row for each whose options are few and short, else a row an
    option."""
    rows: list[list[dict[str, str]]] = []
    for question in questions[:_MAX_QUESTIONS]:
        buttons = [
            {"text": _label(option), "callback_data": answer_data(question.interaction_id, index)}
            for index, option in enumerate(question.options[:_MAX_OPTIONS])
        ]
        short = sum(len(button["text"]) for button in buttons) <= _ONE_ROW_CHARS
        if short and len(buttons) <= _ONE_ROW_BUTTONS:
            rows.append(buttons)
        else:
            rows.extend([button] for button in buttons)
    return {"inline_keyboard": [row for row in rows if row]}


def without_question(markup: Mapping[str, Any], data: str) -> dict[str, Any]:
    """The keyboard without the buttons of the question to which the button `data` belongs."""
    handle = data.rpartition(":")[0]
    rows = [
        [button for button in row if str(button.get("callback_data", "")).rpartition(":")[0] != handle]
        for row in markup.get("inline_keyboard", ())
    ]
    return {"inline_keyboard": [row for row in rows if row]}


def _label(option: str) -> str:
    shown = " ".join(visible(option).split())
    return (shown if len(shown) <= _MAX_LABEL else shown[: _MAX_LABEL - 1] + "…") or "…"
