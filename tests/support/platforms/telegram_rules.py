"""What Telegram refuses: lengths in UTF-16 units, entities, keyboards, and too many calls a second.

The numbers are the documented ones; where Telegram publishes none (floods), those that bot authors go by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.clock import Clock

TEXT_UNITS = 4096
CAPTION_UNITS = 1024
CALLBACK_BYTES = 64
UPLOAD_BYTES = 50 * 1024 * 1024
DOWNLOAD_BYTES = 20 * 1024 * 1024
_ENTITIES = frozenset(
    {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic"}
    | {"underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre"}
    | {"text_link", "text_mention", "custom_emoji", "date_time"}
)


class ApiError(Exception):
    """An answer with `ok: false`."""

    def __init__(self, code: int, description: str, *, retry_after: int | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.retry_after = retry_after


def bad_request(words: str) -> ApiError:
    """400, worded as Telegram does."""
    return ApiError(400, f"Bad Request: {words}")


def units(text: str) -> int:
    """The length of `text` as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def check_text(text: object, entities: object, *, limit: int = TEXT_UNITS, empty: bool = False) -> None:
    """Raise ApiError unless this text may be shown. `empty`: it may be blank."""
    if not isinstance(text, str) or not text.strip():
        if empty:
            return
        raise bad_request("message text is empty")
    if units(text) > limit:
        raise bad_request("message is too long" if limit == TEXT_UNITS else "message caption is too long")
    problem = entity_problem(text, entities)
    if problem:
        raise bad_request(f"can't parse entities: {problem}")


def entity_problem(text: str, entities: object) -> str:
    """What is wrong with `entities` of `text`, or nothing."""
    if entities in (None, [], ()):
        return ""
    if not isinstance(entities, list) or len(entities) > 100:
        return "expected an array of at most 100 entities"
    whole = text.encode("utf-16-le", "surrogatepass")
    spans: list[tuple[int, int]] = []
    for entity in entities:
        problem = _one_entity(entity, whole)
        if problem:
            return problem
        spans.append((entity["offset"], entity["offset"] + entity["length"]))
    for index, (start, end) in enumerate(spans):
        for other, stop in spans[index + 1 :]:
            if start < other < end < stop or other < start < stop < end:
                return "entities overlap without nesting"
    return ""


def check_keyboard(markup: object) -> None:
    """Raise ApiError unless `markup` is absent or an inline keyboard that Telegram takes."""
    if markup is None:
        return
    rows = markup.get("inline_keyboard") if isinstance(markup, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad_request("object expected as reply markup")
    for button in (button for row in rows for button in row):
        if not isinstance(button, dict) or not button.get("text"):
            raise bad_request("text buttons are unallowed in the inline keyboard")
        data = button.get("callback_data")
        if not isinstance(data, str) or not 1 <= len(data.encode()) <= CALLBACK_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")


@dataclass(slots=True)
class _Bucket:
    size: float
    per_s: float
    level: float
    at: float

    def wait(self, now: float) -> float:
        self.level = min(self.size, self.level + (now - self.at) * self.per_s)
        self.at = now
        return 0.0 if self.level >= 1 else (1 - self.level) / self.per_s


@dataclass(slots=True)
class Floods:
    """How often the bot may show something: 1/s per chat after 3 at once, 20/min in a group, 30/s overall."""

    clock: Clock
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    def check(self, chat: int) -> None:
        """Count one call; ApiError 429 with whole seconds where it is one too many."""
        now = self.clock.monotonic()
        asked = [self._bucket("all", 30, 30, now), self._bucket(f"{chat}", 3, 1, now)]
        if chat < 0:
            asked.append(self._bucket(f"{chat} by minute", 20, 20 / 60, now))
        wait = max(bucket.wait(now) for bucket in asked)
        if wait > 0:
            seconds = max(1, math.ceil(wait))
            raise ApiError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
        for bucket in asked:
            bucket.level -= 1

    def _bucket(self, name: str, size: float, per_s: float, now: float) -> _Bucket:
        return self._buckets.setdefault(name, _Bucket(size, per_s, size, now))


def plain_entities(entities: object) -> Sequence[Mapping[str, Any]]:
    """The entities of a checked message."""
    return entities if isinstance(entities, list) else ()


def _one_entity(entity: object, whole: bytes) -> str:
    if not isinstance(entity, dict) or entity.get("type") not in _ENTITIES:
        return "unknown entity type"
    offset, length = entity.get("offset"), entity.get("length")
    if type(offset) is not int or type(length) is not int or offset < 0 or length < 1:
        return "entity offset or length is invalid"
    if (offset + length) * 2 > len(whole):
        return "entity ends after the end of the text"
    for edge in (offset, offset + length):
        if (
            edge * 2 < len(whole)
            and 0xDC00 <= int.from_bytes(whole[edge * 2 : edge * 2 + 2], "little") < 0xE000
        ):
            return "entity splits a character"
    if entity["type"] == "text_link" and not str(entity.get("url", "")).startswith(
        ("http://", "https://", "tg://", "mailto:")
    ):
        return "text_link without a usable url"
    return ""


def _inside_pair(whole: bytes, unit: int) -> bool:
    following = int.from_bytes(whole[unit * 2 : unit * 2 + 2], "little")
    return 0xDC00 <= following < 0xE000
