"""Combine albums: Telegram sends each picture as a separate update, and an edit as that of one picture, while
a user sees one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.json_fields import text
from adapters.telegram.inbound import chat_of
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.messages import Inbound, InboundMessage

Update = Mapping[str, Any]
_MOST_ALBUMS = 500
"""Albums whose edits are recognised; the oldest are forgotten first."""


def album_of(update: Update, kind: str = "message") -> str:
    """The common id of an album's parts; empty for anything else. `kind`: that of the update."""
    message = update.get(kind)
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
        unusable=tuple(words for part in parts for words in part.unusable),
        addressed=any(part.addressed for part in parts),
    )


class Albums:
    """Makes one message of an album's parts, and remembers them, so that the edit of one is the edit of the
    whole message. In memory only: after a restart such an edit has the one part."""

    def __init__(self) -> None:
        self._parts = BoundedDict[str, tuple[InboundMessage, ...]](_MOST_ALBUMS)

    def together(self, updates: Sequence[Update], items: Sequence[Inbound]) -> Sequence[Inbound]:
        """The items of `updates` as messages of their author's."""
        messages = tuple(item for item in items if isinstance(item, InboundMessage))
        if len(messages) == 1 and (album := album_of(updates[0], "edited_message")):
            return [self._edited(album, messages[0])]
        if len(messages) < 2 or len(messages) < len(items):
            return items
        self._parts[album_of(updates[0])] = messages
        return [merged(messages)]

    def _edited(self, album: str, part: InboundMessage) -> InboundMessage:
        known = self._parts.get(album, ())
        if part.place not in [one.place for one in known]:
            return part
        parts = tuple(part if one.place == part.place else one for one in known)
        self._parts[album] = parts
        return replace(
            merged(parts),
            message_id=part.message_id,
            native_id=part.native_id,
            received_at=part.received_at,
            edited=True,
        )
