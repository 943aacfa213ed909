"""Combine albums: Telegram sends each picture as a separate update, while a user sees one message. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.json_fields import text
from adapters.telegram.inbound import chat_of
from pipeline.domain.messages import InboundMessage

Update = Mapping[str, Any]


def album_of(update: Update) -> str:
    """The common id of an album's parts; empty for anything else."""
    message = update.get("message")
    # Most updates are no part of an album.
    if not isinstance(message, dict) or "media_group_id" not in message:
        return ""
    return text(message["media_group_id"], most=64)


def by_chat(updates: Sequence[Update]) -> list[list[list[Update]]]:
    """The updates by chat, in their order; within a chat, the parts of an album together."""
    chats: dict[int | None, list[list[Update]]] = {}
    for update in updates:
        queue = chats.setdefault(chat_of(update), [])
        album = album_of(update)
        if album and queue and album_of(queue[-1][0]) == album:
            queue[-1].append(update)
        else:
            queue.append([update])
    return list(chats.values())


def ends_inside_album(updates: Sequence[Update]) -> bool:
    """Whether more parts of the newest update's album may follow."""
    return bool(updates) and bool(album_of(updates[-1]))


def merged(parts: Sequence[InboundMessage]) -> InboundMessage:
    """One message with the files and the text of all parts, under the identity of the first."""
    first = parts[0]
    return replace(
        first,
        text="\n\n".join(part.text for part in parts if part.text.strip()),
        voice=next((part.voice for part in parts if part.voice is not None), None),
        attachments=tuple(ref for part in parts for ref in part.attachments),
        addressed=any(part.addressed for part in parts),
    )
