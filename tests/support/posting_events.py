"""The reference posting channel's parser: its native events, as the gateway's inbound items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.identity import derived_message_id
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, Inbound, InboundMessage, MediaRef


def inbound_of(event: Mapping[str, Any], channel: str, account: str) -> Inbound | None:
    """The inbound item of a native event; None for bots' messages and unknown events. Raises nothing."""
    native_id, chat, author = (event.get(name) for name in ("id", "chat", "from"))
    if not (_named(native_id) and _named(chat) and _named(author)) or event.get("bot") is not False:
        return None
    common: dict[str, Any] = {
        "message_id": derived_message_id(channel, account, str(native_id)),
        "native_id": native_id,
        "thread": ThreadKey(channel=channel, account=account, chat=str(chat)),
        "author": Author(id=str(author)),
        "received_at": 1_700_000_000.0,
        "private": event.get("private") is True,
    }
    match event:
        case {"kind": "press", "data": str(data)} if len(data) <= 100 and data.count(":") == 2:
            _, handle, place = data.split(":")
            option = int(place) if place.isdecimal() else -1
            return ApprovalReply(interaction_id=handle, choice="", option=option, **common)
        case {"kind": "message", "text": str(text)} if text.strip():
            addressed = common["private"] or event.get("addressed") is True
            return InboundMessage(text=text, addressed=addressed, reply_handle=f"to-{native_id}", **common)
        case {"kind": "voice", "handle": str(handle)} if handle:
            voice = MediaRef(channel=channel, handle=handle, kind="voice")
            return InboundMessage(voice=voice, reply_handle=f"to-{native_id}", **common)
        case _:
            return None


def _named(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100
