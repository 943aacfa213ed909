"""Render content as Bot API fields. Pure: `sending` sends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.channel import Outgoing, Part
from adapters.files import OutgoingFile
from adapters.formatting.overflow import FILE_NAME, MAX_PARTS, as_file
from adapters.formatting.telegram import TelegramText, telegram_parts
from adapters.telegram.question_buttons import question_keyboard
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaKind

_NO_PREVIEW: Mapping[str, Any] = {"is_disabled": True}
FILE_BYTES = 50_000_000
"""The largest file that a bot may send."""
_PHOTO_BYTES = 10_000_000
_CAPTION_UNITS = 1024
_SHOWN_AS: Mapping[MediaKind, frozenset[str]] = {
    "image": frozenset({"image/png", "image/jpeg", "image/webp"}),
    "audio": frozenset({"audio/mpeg", "audio/mp4"}),
    "video": frozenset({"video/mp4"}),
}


def render(outgoing: Outgoing) -> tuple[Part, ...]:
    """`outgoing` as messages; more than MAX_PARTS become the first one and a file. The last has the
    buttons."""
    texts = telegram_parts(outgoing.text, transcript=outgoing.heard)
    if len(texts) > MAX_PARTS and not outgoing.unfinished:
        whole = Part(body={}, plain=FILE_NAME, file=as_file(outgoing.text), file_name=FILE_NAME)
        parts = [_part(texts[0]), whole]
    else:
        parts = [_part(text) for text in texts]
    if outgoing.attached:
        name = outgoing.attached_name
        parts.insert(0, Part(body={}, plain=name, file=outgoing.attached, file_name=name))
    if outgoing.questions:
        last = parts[-1]
        body = {**last.body, "reply_markup": question_keyboard(outgoing.questions)}
        parts[-1] = Part(body=body, plain=last.plain, file=last.file, file_name=last.file_name)
    return tuple(parts)


def render_file(file: OutgoingFile) -> Part:
    """The message that shows `file`: as a picture, a sound or a film where Telegram shows these."""
    kind: MediaKind = file.kind if file.mime in _SHOWN_AS.get(file.kind, ()) else "file"
    if kind == "image" and len(file.content) > _PHOTO_BYTES:
        kind = "file"
    caption = file.caption.encode("utf-16-le", "replace")[: 2 * _CAPTION_UNITS].decode("utf-16-le", "ignore")
    body = {"caption": caption} if caption else {}
    return Part(body=body, plain=caption or file.name, file=file.content, file_name=file.name, file_kind=kind)


def unformatted(part: Part) -> dict[str, Any]:
    """The part's fields without anything that Telegram parses."""
    fields = {key: value for key, value in part.body.items() if key != "entities"}
    return {**fields, "text": part.plain}


def place_of(thread: ThreadKey) -> dict[str, Any]:
    """The fields that address a message. Raises ValueError for a thread that is not Telegram's."""
    place = {"chat_id": int(thread.chat)}
    if thread.topic is not None:
        place["message_thread_id"] = int(thread.topic)
    return place


def reply_fields(thread: ThreadKey, reply_handle: str) -> dict[str, Any]:
    """In a group chat an answer replies to its message; in a private chat that is not needed."""
    if not reply_handle.isdecimal() or not thread.chat.startswith("-"):
        return {}
    target = {"message_id": int(reply_handle), "allow_sending_without_reply": True}
    return {"reply_parameters": target}


def _part(text: TelegramText) -> Part:
    body: dict[str, Any] = {"text": text.text, "link_preview_options": _NO_PREVIEW}
    if text.entities:
        body["entities"] = [dict(entity) for entity in text.entities]
    return Part(body=body, plain=text.plain)
