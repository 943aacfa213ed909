"""Renders an answer as Slack messages: sections of mrkdwn, buttons below the last, `text` for notifications.

Pure. Everything is within Slack's limits by construction: 50 blocks, 3,000 characters a section, 13,200 a
message, 75 a button.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapters.channel import Outgoing, Part
from adapters.formatting.overflow import FILE_NAME, MAX_PARTS, as_file
from adapters.formatting.slack import slack_parts
from adapters.formatting.visible import visible
from adapters.slack.fields import table, tables
from adapters.slack.inbound import STOP_ACTION
from pipeline.domain.events import ApprovalRequired
from pipeline.domain.messages import button_handle

MOST_BLOCKS = 50
_LABEL_CHARS = 75
_BUTTONS_PER_BLOCK = 25
_STOP_LABEL = "Stop"
_PLAIN_CHARS = 2_900
"""Of the words in the section that a plain message with buttons needs; all of them are in its `text`."""
_NO_WORDS = "…"
Block = dict[str, Any]


def render(outgoing: Outgoing) -> tuple[Part, ...]:
    """The messages for `outgoing`, at least one. More than five become the first and a file."""
    texts = slack_parts(outgoing.text, heard=outgoing.heard)
    file: tuple[Part, ...] = ()
    if len(texts) > MAX_PARTS:
        texts = texts[:1]
        file = (Part(body={}, plain="", file=as_file(outgoing.text), file_name=FILE_NAME),)
    parts: list[Part] = []
    for place, text in enumerate(texts, start=1):
        blocks = [_section(section) for section in text.sections]
        if place == len(texts):
            blocks += _buttons(outgoing, room=MOST_BLOCKS - len(blocks))
        parts.append(Part(body=_body(text.plain, blocks), plain=text.plain))
    return (*parts, *file)


def plain_body(part: Part) -> Mapping[str, Any]:
    """The same words without formatting, for a second try: the buttons stay."""
    blocks = [block for block in tables_of(part.body) if block.get("type") == "actions"]
    if not blocks:
        return _body(part.plain, [])
    first = part.plain[:_PLAIN_CHARS] or _NO_WORDS
    words: Block = {"type": "section", "text": {"type": "plain_text", "text": first, "emoji": False}}
    return _body(part.plain, [words, *blocks])


def without_buttons(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The body of a message of ours, as a press shows it, with its buttons gone; None where it has none."""
    blocks = message.get("blocks")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return None
    left = [block for block in blocks if block.get("type") != "actions"]
    text = message.get("text")
    if len(left) == len(blocks) or not isinstance(text, str):
        return None
    return _body(text or _NO_WORDS, left)


def pressed_label(payload: Mapping[str, Any]) -> str:
    """The words on the pressed button."""
    for action in tables(payload.get("actions")):
        label = table(action.get("text")).get("text")
        if isinstance(label, str):
            return label[:_LABEL_CHARS]
    return ""


def tables_of(body: Mapping[str, Any]) -> Sequence[Block]:
    """The blocks of a rendered body."""
    blocks: Sequence[Block] = body.get("blocks", ())
    return blocks


def _body(text: str, blocks: list[Block]) -> dict[str, Any]:
    return {"text": text if text.strip() else _NO_WORDS, "blocks": blocks}


def _section(words: str) -> Block:
    """`verbatim`: Slack makes no links of its own; `expand`: nobody has to press "see more"."""
    return {"type": "section", "expand": True, "text": {"type": "mrkdwn", "text": words, "verbatim": True}}


def _buttons(outgoing: Outgoing, *, room: int) -> list[Block]:
    rows = [row for question in outgoing.questions for row in _question_rows(question)]
    if outgoing.unfinished:
        rows.append(_row([_button(_STOP_LABEL, STOP_ACTION)]))
    return rows[:room]


def _question_rows(question: ApprovalRequired) -> Iterator[Block]:
    handle = button_handle(question.interaction_id)
    buttons = [_button(option, f"q:{handle}:{index}") for index, option in enumerate(question.options)]
    for start in range(0, len(buttons), _BUTTONS_PER_BLOCK):
        yield _row(buttons[start : start + _BUTTONS_PER_BLOCK])


def _row(buttons: list[Block]) -> Block:
    return {"type": "actions", "elements": buttons}


def _button(label: str, action: str) -> Block:
    words = visible(label).strip() or _NO_WORDS
    if len(words) > _LABEL_CHARS:
        words = words[: _LABEL_CHARS - 1] + "…"
    return {
        "type": "button",
        "text": {"type": "plain_text", "text": words, "emoji": False},
        "action_id": action,
    }
