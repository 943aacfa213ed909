"""Parse Slack's events about people's reactions to the bot's messages. Pure, for any input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.identity import derived_message_id
from adapters.json_fields import mapping, text
from adapters.slack.fields import ident, stamp
from adapters.slack.settings import CHANNEL
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, Reaction
from pipeline.domain.reactions import mark_named

KINDS = {"reaction_added": True, "reaction_removed": False}
"""By the event's type: whether the reaction is there now."""


def parse_reaction(event: Mapping[str, Any], bot_user: str, account: str) -> Reaction | None:
    """The reaction, or None for one without a meaning or on somebody else's message."""
    item, user = mapping(event.get("item")), ident(event.get("user"))
    chat, ts, at = ident(item.get("channel")), stamp(item.get("ts")), stamp(event.get("event_ts"))
    mark = mark_named(text(event.get("reaction"), most=80))
    if mark is None or item.get("type") != "message" or not (user and chat and ts and at):
        return None
    if user == bot_user or event.get("item_user") != bot_user:
        return None
    on = KINDS[str(event.get("type"))]
    native_id = f"{chat}:{ts}:{user}:{mark}:{at}"
    return Reaction(
        message_id=derived_message_id(CHANNEL, account, native_id),
        native_id=native_id,
        thread=ThreadKey(channel=CHANNEL, account=account, chat=chat),
        author=Author(id=user),
        received_at=float(at),
        mark=mark,
        on=on,
        target=f"{chat}:{ts}",
        private=chat.startswith("D"),
    )
