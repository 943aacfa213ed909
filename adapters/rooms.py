"""Optional ports of a channel for group chats: people's names, and the messages before a mention.

Both are called when a turn begins: never before an acknowledgement, and never for a stranger.
"""

from __future__ import annotations

from typing import Protocol

from typing_extensions import TypeIs

from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import InboundMessage
from pipeline.domain.rooms import RoomLine


class NamingChannel(Protocol):
    """A channel whose messages name people by their ids alone."""

    async def named(self, message: InboundMessage) -> InboundMessage:
        """The message with its author's name, and with names in place of the ids that it mentions,
        as far as the platform provides them. `classify` takes any exception."""
        ...


class ReadingChannel(Protocol):
    """A channel that can read the messages in a group chat before a given one."""

    async def recent(self, thread: ThreadKey, *, before: str, limit: int) -> tuple[RoomLine, ...]:
        """The newest `limit` messages, oldest first, of the platform's thread if the message is in one, else
        of the group chat; the bot's messages included. Reads before the native id `before`; empty means the
        newest. `classify` takes any exception."""
        ...


def looks_up_names(channel: object) -> TypeIs[NamingChannel]:
    """Like `isinstance`, which is too slow for every message."""
    return hasattr(channel, "named")


def reads_rooms(channel: object) -> TypeIs[ReadingChannel]:
    """Like `isinstance`, which is too slow for every message."""
    return hasattr(channel, "recent")
