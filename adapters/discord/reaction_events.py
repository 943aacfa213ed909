"""Parse Discord's events about people's reactions. Pure, for any input.

Discord sends no time with them. It sends them in order, and none that were made while the bot was away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.discord.payload import snowflake
from adapters.discord.settings import CHANNEL
from adapters.identity import derived_message_id
from adapters.json_fields import mapping, text
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, Reaction
from pipeline.domain.reactions import mark_of

KINDS = {"MESSAGE_REACTION_ADD": True, "MESSAGE_REACTION_REMOVE": False}
"""By the event's name: whether the reaction is there now."""
_EMOJI_CHARS = 16
_NAME_CHARS = 100


def parse_reaction(
    name: str, payload: Mapping[str, Any], *, account: str, bot_id: str, now: float
) -> Reaction | None:
    """The reaction, or None for one without a meaning or of a bot."""
    user, channel = snowflake(payload.get("user_id")), snowflake(payload.get("channel_id"))
    message, member = (
        snowflake(payload.get("message_id")),
        mapping(mapping(payload.get("member")).get("user")),
    )
    mark = mark_of(text(mapping(payload.get("emoji")).get("name"), most=_EMOJI_CHARS))
    if mark is None or not (user and channel and message) or user == bot_id or member.get("bot"):
        return None
    native_id = f"{message}:{user}:{mark}:{now}"
    return Reaction(
        message_id=derived_message_id(CHANNEL, account, native_id),
        native_id=native_id,
        thread=ThreadKey(channel=CHANNEL, account=account, chat=channel),
        author=Author(
            id=user, name=text(member.get("global_name") or member.get("username"), most=_NAME_CHARS)
        ),
        received_at=now,
        mark=mark,
        on=KINDS[name],
        target=message,
        private=payload.get("guild_id") is None,
    )
