"""Attachments of Discord's messages as typed references, and the lookup of a reference.

Not here: the download itself (`download`). A reference contains only ids, never a link: links expire after a
day, and a message must not choose the server to download from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.discord.payload import snowflake
from adapters.discord.settings import CHANNEL
from adapters.json_fields import integer, mapping, mappings, text
from adapters.media_kinds import media_kind
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import MediaRef

_VOICE_MESSAGE = 1 << 13
_MOST = 10
"""Discord's limit of attachments per message."""
_NAME_CHARS = 200
_MIME_CHARS = 100
_LONGEST_S = 24 * 3600.0
_LARGEST = 1 << 40
_HANDLE = re.compile(r"([0-9]{1,20})/([0-9]{1,20})/([0-9]{1,20})")


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFound:
    """The files of a message."""

    voice: MediaRef | None = None
    attachments: tuple[MediaRef, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there is anything."""
        return self.voice is not None or bool(self.attachments)


def media_of(message: Mapping[str, Any], forwarded: Sequence[Mapping[str, Any]]) -> MediaFound:
    """The attachments of `message` and of the messages that it forwards. The first one that is a voice
    message is the voice; others may speak in a sound file."""
    where = f"{snowflake(message.get('channel_id'))}/{snowflake(message.get('id'))}"
    refs: list[MediaRef] = []
    for part in (message, *forwarded):
        spoken = bool((integer(part.get("flags")) or 0) & _VOICE_MESSAGE)
        for one in mappings(part.get("attachments"), most=_MOST):
            ref = _ref(one, where, spoken=spoken)
            if ref is not None:
                refs.append(ref)
    refs = refs[:_MOST]
    voice = next((ref for ref in refs if ref.kind == "voice"), None)
    return MediaFound(voice=voice, attachments=tuple(ref for ref in refs if ref is not voice))


def place_of(handle: str) -> tuple[str, str, str] | None:
    """Channel, message and attachment id of a reference; None for any other text."""
    match = _HANDLE.fullmatch(handle)
    return (match.group(1), match.group(2), match.group(3)) if match else None


def attachment_in(message: Mapping[str, Any], attachment_id: str) -> Mapping[str, Any] | None:
    """The attachment object in a message object, or in the messages that it forwards."""
    snapshots = mappings(message.get("message_snapshots"), most=1)
    for part in (message, *(mapping(one.get("message")) for one in snapshots)):
        for one in mappings(part.get("attachments"), most=_MOST):
            if snowflake(one.get("id")) == attachment_id:
                return one
    return None


def _ref(one: Mapping[str, Any], where: str, *, spoken: bool) -> MediaRef | None:
    attachment_id = snowflake(one.get("id"))
    if not attachment_id:
        return None
    mime = text(one.get("content_type"), most=_MIME_CHARS).lower()
    size = integer(one.get("size")) or 0
    name = text(one.get("filename"), most=_NAME_CHARS)
    kind = media_kind(mime, name)
    return MediaRef(
        channel=CHANNEL,
        handle=f"{where}/{attachment_id}",
        mime=mime,
        size=size if 0 < size <= _LARGEST else None,
        duration_s=_duration(one.get("duration_secs")),
        kind="voice" if spoken and kind in ("audio", "file") else kind,
        name=name,
    )


def _duration(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Also False for NaN; avoids converting an infinite number.
    return float(value) if 0 < value <= _LONGEST_S else None
