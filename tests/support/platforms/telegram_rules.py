"""Telegram's limits: lengths in UTF-16 units, entities, keyboards, and calls per second.

The numbers are the documented ones; where Telegram publishes none (floods), those that bot authors go by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.clock import Clock
from pipeline.domain.file_types import file_type
from tests.adapters.formatting.rules import is_blank, size, telegram_problems

TEXT_UNITS = 4096
CAPTION_UNITS = 1024
CALLBACK_BYTES = 64
ROW_BUTTONS = 8
KEYBOARD_BUTTONS = 100
UPLOAD_BYTES = 50 * 1024 * 1024
PHOTO_BYTES = 10 * 1024 * 1024
PHOTO_SIDES = 10_000
PHOTO_RATIO = 20
DOWNLOAD_BYTES = 20 * 1024 * 1024


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


def check_text(text: object, entities: object, *, limit: int = TEXT_UNITS, empty: bool = False) -> None:
    """Raise ApiError unless this text may be shown. `empty`: it may be blank."""
    if not isinstance(text, str) or is_blank(text):
        if empty:
            return
        raise bad_request("message text is empty")
    if size(text) > limit:
        raise bad_request("message is too long" if limit == TEXT_UNITS else "message caption is too long")
    marks = entities or []
    if not isinstance(marks, list) or not all(isinstance(mark, dict) for mark in marks):
        raise bad_request("can't parse entities: expected an array of objects")
    problems = telegram_problems(text, marks, limit=limit)
    if problems:
        raise bad_request(f"can't parse entities: {problems[0]}")


def check_photo(content: bytes) -> None:
    """Raise ApiError unless the bytes may be sent as a picture."""
    found = file_type(content)
    if found.mime not in ("image/png", "image/jpeg", "image/webp"):
        raise bad_request("IMAGE_PROCESS_FAILED")
    width, height = found.width, found.height
    if width + height > PHOTO_SIDES or max(width, height) > PHOTO_RATIO * max(1, min(width, height)):
        raise bad_request("PHOTO_INVALID_DIMENSIONS")
    if len(content) > PHOTO_BYTES:
        raise bad_request("file is too big for a photo")


def check_voice(upload: object, duration: object) -> tuple[str, bytes]:
    """The name and the bytes of a voice message: OGG with Opus. Raises ApiError."""
    if not isinstance(upload, tuple):
        raise bad_request("there is no voice in the request")
    name, content = upload
    if not content.startswith(b"OggS") or b"OpusHead" not in content[:64]:
        raise bad_request("VOICE_FILE_INVALID: this fake takes OGG with Opus only")
    if not str(duration or "").isdecimal():
        raise bad_request("wrong parameter duration in request")
    return str(name), content


def check_keyboard(markup: object) -> None:
    """Raise ApiError unless `markup` is absent or an inline keyboard that Telegram accepts."""
    if markup is None:
        return
    rows = markup.get("inline_keyboard") if isinstance(markup, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad_request("object expected as reply markup")
    if any(len(row) > ROW_BUTTONS for row in rows) or sum(map(len, rows)) > KEYBOARD_BUTTONS:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
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
