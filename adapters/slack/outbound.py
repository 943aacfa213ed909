"""Render an answer as Slack messages: sections of mrkdwn, buttons below the last, `text` for notifications.

Pure. Everything is within Slack's limits by construction: 50 blocks, 3,000 characters a section, 13,200 a
message, 75 a button, and 4,000 bytes for the `text` of an edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adapters.channel import Outgoing, Part
from adapters.files import OutgoingFile
from adapters.formatting.overflow import FILE_NAME, MAX_PARTS, as_file
from adapters.formatting.slack import slack_parts
from adapters.slack.plain_text import escaped
from adapters.slack.question_buttons import Block, asks, button_rows

MOST_BLOCKS = 50
FILE_BYTES = 1_000_000_000
_ALT_CHARS = 500
_PLAIN_CHARS = 2_900
"""The maximum in one section of a plain message."""
_TEXT_BYTES = 4_000
"""The maximum of the escaped `text`: chat.update rejects more (`msg_too_long`), also for messages of
blocks."""
_HALF_ESCAPE = re.compile(r"&[a-z]{0,3}$")
_NO_WORDS = "…"


def render(outgoing: Outgoing) -> tuple[Part, ...]:
    """The messages for `outgoing`, at least one. More than five become the first one and a file."""
    texts = slack_parts(outgoing.text, transcript=outgoing.heard)
    file: tuple[Part, ...] = ()
    if len(texts) > MAX_PARTS:
        texts = texts[:1]
        file = (Part(body={}, plain="", file=as_file(outgoing.text), file_name=FILE_NAME),)
    parts: list[Part] = []
    for place, text in enumerate(texts, start=1):
        blocks = [_section(section) for section in text.sections]
        if place == len(texts):
            blocks += button_rows(outgoing, available=MOST_BLOCKS - len(blocks))
        parts.append(Part(body=_body(text.plain, blocks), plain=text.plain))
    if outgoing.attached:
        parts.insert(0, Part(body={}, plain="", file=outgoing.attached, file_name=outgoing.attached_name))
    return (*parts, *file)


def render_file(file: OutgoingFile) -> Part:
    """The message with `file`, which Slack shows or plays by its type. `body` has the title of the file, the
    words above it, and its description for people who cannot see it."""
    body = {"title": file.name, "comment": escaped(file.caption)}
    if file.kind == "image":
        body["alt"] = (file.caption or file.name)[:_ALT_CHARS]
    return Part(
        body=body,
        plain=file.caption or file.name,
        file=file.content,
        file_name=file.name,
        file_kind=file.kind,
    )


def plain_body(part: Part) -> Mapping[str, Any]:
    """The part without formatting, for a second try, with its full text and its buttons."""
    buttons = [block for block in tables_of(part.body) if block.get("type") == "actions"]
    if not buttons and _bytes(part.plain) <= _TEXT_BYTES:
        return _body(part.plain, [])
    return _body(part.plain, [*_plain_sections(part.plain or _NO_WORDS), *buttons])


def without_question(message: Mapping[str, Any], handle: str) -> Mapping[str, Any] | None:
    """A message of the bot, given as a body or as in a press, without the buttons of the
    question with that handle; None where it has none."""
    blocks = message.get("blocks")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return None
    left = [block for block in blocks if not asks(block, handle)]
    text = message.get("text")
    if len(left) == len(blocks) or not isinstance(text, str):
        return None
    return _body(text or _NO_WORDS, left)


def tables_of(body: Mapping[str, Any]) -> Sequence[Block]:
    """The blocks of a rendered body."""
    blocks: Sequence[Block] = body.get("blocks", ())
    return blocks


def _body(text: str, blocks: list[Block]) -> dict[str, Any]:
    return {"text": _first_of(text) if text.strip() else _NO_WORDS, "blocks": blocks}


def _first_of(text: str) -> str:
    """The start of an escaped text that fits into `text`."""
    if _bytes(text) <= _TEXT_BYTES:
        return text
    available = _TEXT_BYTES - _bytes(_NO_WORDS)
    return (
        _HALF_ESCAPE.sub("", text.encode("utf-8", "replace")[:available].decode("utf-8", "ignore"))
        + _NO_WORDS
    )


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _plain_sections(words: str) -> Iterator[Block]:
    while words:
        # The last part of the split ends no escape; any other may have been cut within one.
        piece = words if len(words) <= _PLAIN_CHARS else _HALF_ESCAPE.sub("", words[:_PLAIN_CHARS])
        yield {"type": "section", "text": {"type": "plain_text", "text": piece, "emoji": False}}
        words = words[len(piece) :]


def _section(words: str) -> Block:
    """`verbatim`: Slack adds no links; `expand`: the text is not folded below "see more"."""
    return {"type": "section", "expand": True, "text": {"type": "mrkdwn", "text": words, "verbatim": True}}
