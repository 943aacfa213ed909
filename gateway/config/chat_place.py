"""A chat that the bot writes to by itself, as settings: the operator's notices and the heartbeat name one."""

from __future__ import annotations

from typing import Final

from gateway.config.section import Section, setting

MAX_NAME: Final = 64
MAX_ID: Final = 200


class ChatPlace(Section):
    """A chat on one of the channels. A table that has one describes its channel and its chat."""

    channel: str | None = setting(
        None, "The channel of the chat.", example="telegram", min_length=1, max_length=MAX_NAME
    )
    account: str | None = setting(
        None,
        "The account on that channel, where there are several.",
        example="main",
        min_length=1,
        max_length=MAX_NAME,
    )
    chat: str | None = setting(
        None, "The chat, by the platform's id.", example="123456789", min_length=1, max_length=MAX_ID
    )
