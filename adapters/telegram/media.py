"""The files in messages: which of them are speech, their names, and their download."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx
from telegram.error import BadRequest, TelegramError

from adapters.downloads import fetched, not_fetched, refused
from adapters.json_fields import amount, integer, items, mapping, text
from adapters.media_kinds import media_kind
from adapters.telegram.api import TelegramApi
from adapters.telegram.failures import classify, words_of
from adapters.telegram.settings import CHANNEL
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import MediaKind, MediaRef

_FILE_ID = re.compile(r"[A-Za-z0-9_-]{1,250}")
_FILE_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_LARGEST_DOWNLOAD = 20_000_000
"""Bytes that a bot may download. Telegram offers a photo in several sizes."""
_GONE = "Telegram no longer has this file. Please send it again."
_SPOKEN: tuple[tuple[str, MediaKind], ...] = (("voice", "voice"), ("video_note", "video"))
"""The Bot API's names and ours: a round video message counts as a voice note. An audio file does not: others
may speak in it."""
_ATTACHED: tuple[tuple[str, MediaKind], ...] = (
    ("audio", "audio"),
    ("animation", "video"),
    ("video", "video"),
    ("document", "file"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramFiles:
    """The files of a message."""

    voice: MediaRef | None = None
    attachments: tuple[MediaRef, ...] = ()


def media_of(message: Mapping[str, Any]) -> TelegramFiles:
    """The files of a message; empty where there are none or where they are malformed. Pure."""
    for field, kind in _SPOKEN:
        if field not in message:
            continue
        voice = _ref(mapping(message.get(field)), kind)
        if voice is not None:
            return TelegramFiles(voice=voice)
    if "photo" in message:
        sizes = [mapping(size) for size in items(message["photo"], most=20)]
        sizes = [size for size in sizes if (integer(size.get("file_size")) or 0) <= _LARGEST_DOWNLOAD]
        photo = max(sizes, key=lambda size: integer(size.get("width")) or 0, default={})
        ref = _ref(photo, "image")
        if ref is not None:
            return TelegramFiles(attachments=(ref,))
    for field, kind in _ATTACHED:
        ref = _ref(mapping(message[field]), kind) if field in message else None
        if ref is None:
            continue
        # An animation is also sent as a document, for old clients: only the first match counts.
        return TelegramFiles(attachments=(ref,))
    return TelegramFiles()


async def download(api: TelegramApi, ref: MediaRef, clock: Clock, *, max_bytes: int) -> bytes:
    """The bytes of `ref`, only from the Bot API server. Raises MediaUnavailable."""
    if ref.channel != CHANNEL or not _FILE_ID.fullmatch(ref.handle):
        raise MediaUnavailable("This is no file of Telegram's.")
    return await fetched(lambda: _once(api, ref, max_bytes), clock)


async def _once(api: TelegramApi, ref: MediaRef, max_bytes: int) -> bytes:
    try:
        found = mapping(await api.call("getFile", {"file_id": ref.handle}))
    except BadRequest as error:
        words = _too_large() if "too big" in words_of(error) else _GONE
        raise MediaUnavailable(words, detail=classify(error).message) from None
    except TelegramError as error:
        raise not_fetched("Telegram", classify(error)) from None
    path = found.get("file_path")
    if not isinstance(path, str) or not _FILE_PATH.fullmatch(path):
        raise MediaUnavailable(_GONE)
    if (integer(found.get("file_size")) or 0) > max_bytes:
        raise MediaUnavailable(_too_large(max_bytes))
    try:
        return await _read(api, path, max_bytes)
    except (httpx.HTTPError, TimeoutError) as error:
        raise not_fetched("Telegram", classify(error)) from None


async def _read(api: TelegramApi, path: str, max_bytes: int) -> bytes:
    content = bytearray()
    async with api.file(path) as response:
        if response.status_code != 200:
            raise refused("Telegram", response.status_code)
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > max_bytes:
                raise MediaUnavailable(_too_large(max_bytes))
    return bytes(content)


def _ref(described: Mapping[str, Any], kind: MediaKind) -> MediaRef | None:
    handle = described.get("file_id")
    if not isinstance(handle, str) or not _FILE_ID.fullmatch(handle):
        return None
    size = integer(described.get("file_size"))
    mime = text(described.get("mime_type"), most=100)
    name = text(described.get("file_name"), most=200)
    if kind == "file":
        kind = media_kind(mime, name)
    return MediaRef(
        channel=CHANNEL,
        handle=handle,
        mime=mime,
        size=size if size is not None and size >= 0 else None,
        duration_s=amount(described.get("duration")),
        kind=kind,
        name=name,
    )


def _too_large(max_bytes: int = 20 * 1024 * 1024) -> str:
    return f"The file is larger than {max_bytes / 1_048_576:.3g} MB. Please send a shorter one."
