"""What a channel may offer for its rooms besides: names of people, and what was said before a message.

Both are asked for when a turn begins: never before an acknowledgement, and never for a stranger.
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
        """The message with the name of its author, and with names in place of the ids of those it mentions,
        as far as the platform tells them. Any exception is given to `classify`."""
        ...


class ReadingChannel(Protocol):
    """A channel that can read what was said in a room before a message."""

    async def recent(self, thread: ThreadKey, *, before: str, limit: int) -> tuple[RoomLine, ...]:
        """The newest `limit` messages at most, oldest first, of the platform's thread where the room has
        threads and the message is in one, else of the room; the bot's own included. `before` is the native id
        of the message before which to read; empty for the newest. Any exception is given to `classify`."""
        ...


def looks_up_names(channel: object) -> TypeIs[NamingChannel]:
    """What `isinstance` says of a channel, which takes too long for every message."""
    return hasattr(channel, "named")


def reads_rooms(channel: object) -> TypeIs[ReadingChannel]:
    """What `isinstance` says of a channel, which takes too long for every message."""
    return hasattr(channel, "recent")
