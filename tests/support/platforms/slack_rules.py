"""Slack's limits of messages, and mrkdwn converted back to the text that a reader sees."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TEXT_LIMIT = 40_000
UPDATE_TEXT_BYTES = 4_000
"""What chat.update takes in `text`, escapes included; blocks or not."""
STREAM_LIMIT = 12_000
BLOCKS_LIMIT = 50
SECTION_LIMIT = 3_000
BLOCK_TEXT_LIMIT = 13_200
_MASS = re.compile(r"<!(?:channel|here|everyone)(?:\|[^>]*)?>")
_LINK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")
_FENCE = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_STYLE = re.compile(r"(?<![\w*_~])([*_~])(?=\S)(.+?)(?<=\S)\1(?![\w*_~])")
PER_MINUTE: Mapping[str, int] = {
    "chat.update": 50,
    "chat.delete": 50,
    "chat.startStream": 20,
    "chat.appendStream": 100,
    "chat.stopStream": 20,
    "conversations.history": 50,
    "conversations.replies": 50,
}
"""The tiers' lower bounds, a whole workspace's calls a minute."""
POSTS_PER_S = 1.0
POST_BURST = 5.0


def refusal(payload: Mapping[str, Any]) -> str:
    """The error code for a message with these fields; empty if Slack accepts it."""
    text = payload.get("text") or ""
    blocks = payload.get("blocks") or []
    if not isinstance(text, str) or not isinstance(blocks, list):
        return "invalid_arguments"
    if not text.strip() and not blocks:
        return "no_text"
    if len(text) > TEXT_LIMIT:
        return "msg_too_long"
    if len(blocks) > BLOCKS_LIMIT or any(not _good_block(block) for block in blocks):
        return "invalid_blocks"
    if _block_chars(blocks) > BLOCK_TEXT_LIMIT:
        return "msg_blocks_too_long"
    return _bad_metadata(payload.get("metadata"))


def edit_refusal(payload: Mapping[str, Any]) -> str:
    """The same for an edit, which takes less in `text`."""
    too_long = len(str(payload.get("text") or "").encode()) > UPDATE_TEXT_BYTES
    return "msg_too_long" if too_long else refusal(payload)


def _bad_metadata(metadata: object) -> str:
    if metadata is None or metadata == {}:
        return ""
    fine = (
        isinstance(metadata, dict)
        and isinstance(metadata.get("event_type"), str)
        and isinstance(metadata.get("event_payload"), dict)
    )
    return "" if fine else "invalid_metadata_format"


def _good_block(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    match block.get("type"):
        case "section" | "header":
            text = block.get("text")
            return isinstance(text, dict) and 1 <= len(text.get("text") or "") <= SECTION_LIMIT
        case "actions":
            elements = block.get("elements")
            return isinstance(elements, list) and 1 <= len(elements) <= 25 and _good_buttons(elements)
        case "context" | "divider" | "markdown" | "rich_text":
            return True
    return False


def _good_buttons(elements: Sequence[object]) -> bool:
    names: list[str] = []
    for element in elements:
        if not isinstance(element, dict) or element.get("type") != "button":
            return False
        text = element.get("text")
        label = text.get("text") if isinstance(text, dict) else ""
        name, value = element.get("action_id") or "", element.get("value") or ""
        if not label or len(label) > 75 or not 1 <= len(name) <= 255 or len(value) > 2000:
            return False
        names.append(name)
    return len(set(names)) == len(names)


def _block_chars(blocks: Sequence[Mapping[str, Any]]) -> int:
    return sum(len((block.get("text") or {}).get("text", "")) for block in blocks if block.get("text"))


def mass_mentions(words: str) -> list[str]:
    """Every unescaped mention of a whole channel in mrkdwn."""
    return _MASS.findall(words)


def mrkdwn_of(value: object) -> list[str]:
    """Every text in blocks that Slack reads as mrkdwn, not as plain text."""
    if isinstance(value, list):
        return [words for one in value for words in mrkdwn_of(one)]
    if not isinstance(value, dict):
        return []
    if value.get("type") in ("mrkdwn", "markdown") and isinstance(value.get("text"), str):
        return [value["text"]]
    return [words for one in value.values() for words in mrkdwn_of(one)]


def shown_text(blocks: Sequence[Mapping[str, Any]], text: str) -> str:
    """The visible text: that of the blocks if they have any, else `text`."""
    parts = [block["text"]["text"] for block in blocks if isinstance(block.get("text"), dict)]
    return readable("\n".join(parts) if parts else text)


def readable(mrkdwn: str) -> str:
    """mrkdwn without its marks: links by their label, styles and fences gone, entities as characters."""
    pieces: list[str] = []
    end = 0
    for fence in _FENCE.finditer(mrkdwn):
        pieces += [_read_line(mrkdwn[end : fence.start()]), html.unescape(fence.group(1))]
        end = fence.end()
    pieces.append(_read_line(mrkdwn[end:]))
    return "".join(pieces)


def _read_line(mrkdwn: str) -> str:
    words = _LINK.sub(lambda link: link.group(2) or link.group(1), mrkdwn)
    words = _CODE.sub(r"\1", words)
    for _ in range(3):
        words = _STYLE.sub(r"\2", words)
    # A zero-width space is invisible.
    return html.unescape(words).replace("\u200b", "")


def decoded(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A request's fields: those that come as JSON in a form are read."""
    plain = dict(payload)
    for name in ("blocks", "metadata", "files"):
        value = plain.get(name)
        if isinstance(value, str):
            try:
                plain[name] = json.loads(value)
            except ValueError:
                plain[name] = "not JSON"
    return plain


@dataclass(slots=True)
class Buckets:
    """Token buckets: about a post a second and channel, and the tiers' calls a minute."""

    levels: dict[str, tuple[float, float]] = field(default_factory=dict)

    def wait_s(self, method: str, channel: str, now: float) -> float:
        """0 and one call taken, or the seconds until a call is allowed."""
        if method in ("chat.postMessage", "chat.startStream") and channel:
            waiting = self._take(f"post {channel}", POSTS_PER_S, POST_BURST, now)
            if waiting or method == "chat.postMessage":
                return waiting
        per_minute = PER_MINUTE.get(method)
        return self._take(method, per_minute / 60, float(per_minute), now) if per_minute else 0.0

    def _take(self, name: str, per_s: float, burst: float, now: float) -> float:
        level, since = self.levels.get(name, (burst, now))
        level = min(burst, level + (now - since) * per_s)
        if level < 1:
            self.levels[name] = (level, now)
            return (1 - level) / per_s
        self.levels[name] = (level - 1, now)
        return 0.0
