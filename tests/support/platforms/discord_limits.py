"""The limits that the fake Discord enforces. Each raises `Refused` with the answer of the API."""

from __future__ import annotations

import base64
import hashlib
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from pipeline.domain.clock import Clock

CONTENT_CHARS = 2000
NONCE_CHARS = 25
REQUEST_BYTES = 25 * 1024 * 1024
FILE_BYTES = 10 * 1024 * 1024
ROWS = 5
BUTTONS = 5
CUSTOM_ID_CHARS = 100
LABEL_CHARS = 80
BUCKET_CALLS = 5
BUCKET_SECONDS = 5.0

INVALID_FORM = 50035
EMPTY_MESSAGE = 50006
INVALID_VOICE = 50161
IS_VOICE_MESSAGE = 1 << 13
TOO_LARGE = 40005


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, code: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.body: dict[str, Any] = {"message": words, "code": code}


@dataclass(slots=True, kw_only=True)
class Bucket:
    """One rate limit bucket: so many calls in a window that opens with its first call."""

    clock: Clock
    calls: deque[float] = field(default_factory=deque)

    def take(self) -> float:
        """Count a call; the seconds until there is room when there is none."""
        now = self.clock.monotonic()
        while self.calls and now - self.calls[0] >= BUCKET_SECONDS:
            self.calls.popleft()
        if len(self.calls) >= BUCKET_CALLS:
            return BUCKET_SECONDS - (now - self.calls[0])
        self.calls.append(now)
        return 0.0

    def headers(self, route: str) -> dict[str, str]:
        """The X-RateLimit-* headers after a call."""
        now = self.clock.monotonic()
        reset = max(0.0, BUCKET_SECONDS - (now - self.calls[0])) if self.calls else 0.0
        return {
            "X-RateLimit-Limit": str(BUCKET_CALLS),
            "X-RateLimit-Remaining": str(BUCKET_CALLS - len(self.calls)),
            "X-RateLimit-Reset": f"{self.clock.now() + reset:.3f}",
            "X-RateLimit-Reset-After": f"{reset:.3f}",
            "X-RateLimit-Bucket": hashlib.sha256(route.encode()).hexdigest()[:32],
        }


def check_message(payload: dict[str, Any], *, files: int, existing: bool = False) -> None:
    """The body of a new or edited message. Raises Refused."""
    content = payload.get("content") or ""
    if not isinstance(content, str) or len(content) > CONTENT_CHARS:
        raise Refused(400, INVALID_FORM, "Invalid Form Body: content must be 2000 or fewer in length")
    components = payload.get("components") or []
    if not existing and not content.strip() and not files and not payload.get("embeds"):
        raise Refused(400, EMPTY_MESSAGE, "Cannot send an empty message")
    nonce = payload.get("nonce")
    if nonce is not None and len(str(nonce)) > NONCE_CHARS:
        raise Refused(400, INVALID_FORM, "Invalid Form Body: nonce must be 25 or fewer in length")
    check_components(components)


def check_voice(payload: dict[str, Any], contents: list[bytes]) -> None:
    """A message that says it is a voice message has one OGG with a length and a waveform, and nothing else.
    Raises Refused."""
    if not int(payload.get("flags") or 0) & IS_VOICE_MESSAGE:
        return
    about = payload.get("attachments") or [{}]
    try:
        drawn = base64.b64decode(str(about[0].get("waveform", "")), validate=True)
    except ValueError:
        drawn = b""
    sound = len(contents) == 1 and contents[0].startswith(b"OggS") and b"OpusHead" in contents[0][:64]
    known = isinstance(about[0].get("duration_secs"), int | float) and 0 < len(drawn) <= 256
    if not sound or not known:
        raise Refused(400, INVALID_VOICE, "Voice messages must have a single audio attachment.")
    if payload.get("content") or payload.get("embeds") or payload.get("components"):
        raise Refused(400, INVALID_VOICE, "Voice messages do not support additional content.")


def check_components(rows: Any) -> None:
    """At most 5 rows of 5 buttons with distinct custom ids. Raises Refused."""
    if not isinstance(rows, list) or len(rows) > ROWS:
        raise Refused(400, INVALID_FORM, "Invalid Form Body: components: 5 rows at most")
    seen: set[str] = set()
    for row in rows:
        buttons = row.get("components") if isinstance(row, dict) and row.get("type") == 1 else None
        if not isinstance(buttons, list) or not 1 <= len(buttons) <= BUTTONS:
            raise Refused(400, INVALID_FORM, "Invalid Form Body: a row has 1 to 5 buttons")
        for button in buttons:
            _check_button(button, seen)


def _check_button(button: Any, seen: set[str]) -> None:
    if not isinstance(button, dict) or button.get("type") != 2 or button.get("style") not in (1, 2, 3, 4):
        raise Refused(400, INVALID_FORM, "Invalid Form Body: not a button")
    custom_id, label = button.get("custom_id"), button.get("label")
    if not isinstance(custom_id, str) or not 1 <= len(custom_id) <= CUSTOM_ID_CHARS:
        raise Refused(400, INVALID_FORM, "Invalid Form Body: custom_id has 1 to 100 characters")
    if custom_id in seen:
        raise Refused(400, INVALID_FORM, "Invalid Form Body: component custom id cannot be duplicated")
    seen.add(custom_id)
    if not isinstance(label, str) or not 1 <= len(label) <= LABEL_CHARS:
        raise Refused(400, INVALID_FORM, "Invalid Form Body: label has 1 to 80 characters")
