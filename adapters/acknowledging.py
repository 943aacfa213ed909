"""The interface of a posting channel that can put a reaction of the bot on a person's message."""

from __future__ import annotations

from typing import Final, Protocol, TypeGuard

from pipeline.domain.ids import ThreadKey

TAKEN: Final = "\N{EYES}"
"""The reaction that says that a message is taken."""


class AcknowledgingChannel(Protocol):
    """A channel that shows with a reaction that a message is taken."""

    @property
    def acknowledges(self) -> bool:
        """Whether the operator wants it."""
        ...

    async def acknowledge(self, thread: ThreadKey, reply_handle: str, *, on: bool) -> None:
        """Put the reaction on the message of the handle, or remove it. Repeating it changes nothing and is no
        error, and neither is a message that is gone."""
        ...


def acknowledges(channel: object) -> TypeGuard[AcknowledgingChannel]:
    """Whether the channel can do it and the operator wants it. Fast enough for every message."""
    return getattr(channel, "acknowledges", False) is True


def may_leave_reactions(channel: object) -> TypeGuard[AcknowledgingChannel]:
    """Whether messages there may have a reaction of the bot. A channel where it only shows that the bot is at
    work states that by `reacts`."""
    return acknowledges(channel) or getattr(channel, "reacts", False) is True
