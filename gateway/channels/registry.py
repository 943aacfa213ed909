"""Find the channel of a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adapters.channel import Channel, ChannelAdapter
from pipeline.domain.ids import AccountKey, ThreadKey


class ChannelRegistry:
    """The channels of one gateway, one for each account."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._channels = {key_of(channel): channel for channel in channels}

    def __iter__(self) -> Iterator[Channel]:
        return iter(self._channels.values())

    def of(self, thread: ThreadKey) -> Channel | None:
        """The channel that the thread is on; None if it is not running."""
        return self._channels.get(thread.account_key)


def key_of(channel: ChannelAdapter) -> AccountKey:
    """The `ThreadKey.account_key` of the threads on the channel."""
    return channel.name, channel.account
