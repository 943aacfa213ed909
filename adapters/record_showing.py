"""Showing channels that read what is on record whenever a person connects, such as the page.

Nothing that is on record is lost to their people, so a reply counts as sent with the commit of its turn, and
is only shown sooner to those who look now.
"""

from __future__ import annotations

from typing import Protocol

from typing_extensions import TypeIs

from adapters.channel import ChannelAdapter, OutboundReply, ShowingChannel


class RecordShowingChannel(ShowingChannel, Protocol):
    """A showing channel whose people miss nothing that is on record."""

    def show_recorded(self, reply: OutboundReply) -> None:
        """Show a recorded reply to those who look now. Returns at once."""
        ...


def shows_record(channel: ChannelAdapter) -> TypeIs[RecordShowingChannel]:
    """Whether a recorded reply counts as sent there."""
    return hasattr(channel, "show_recorded")
