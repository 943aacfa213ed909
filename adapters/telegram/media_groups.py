"""Albums: Telegram sends each picture of one as an update of its own; a reader sees one message. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.telegram.fields import mapping, text
from adapters.telegram.inbound import chat_of
from pipeline.domain.messages import InboundMessage

Update = Mapping[str, Any]


def album_of(update: Update) -> str:
    """What the parts of one album have in common; empty for anything else."""
    return text(mapping(update.get("message")).get("media_group_id"), most=64)


def lanes(updates: Sequence[Update]) -> list[list[list[Update]]]:
    """The updates by chat, in their order; within a chat, the parts of an album together."""
    by_chat: dict[int | None, list[list[Update]]] = {}
    for update in updates:
        lane = by_chat.setdefault(chat_of(update), [])
        album = album_of(update)
        if album and lane and album_of(lane[-1][0]) == album:
            lane[-1].append(update)
        else:
            lane.append([update])
    return list(by_chat.values())


def ends_inside_album(updates: Sequence[Update]) -> bool:
    """Whether the newest update may have more parts to come."""
    return bool(updates) and bool(album_of(updates[-1]))


def merged(parts: Sequence[InboundMessage]) -> InboundMessage:
    """One message with the files and the words of all parts, under the identity of the first."""
    first = parts[0]
    return replace(
        first,
        text="\n\n".join(part.text for part in parts if part.text.strip()),
        voice=next((part.voice for part in parts if part.voice is not None), None),
        attachments=tuple(ref for part in parts for ref in part.attachments),
        addressed=any(part.addressed for part in parts),
    )
