"""What a plug-in offers as a channel: the object of an entry point of the group `parlour.channels`.

Not here: finding and checking the plug-ins (`channel_plugins`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adapters.channel import Channel, RateLimits, Timeline
from gateway.config.posting import PostingSettings
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContext:
    """What the gateway gives to a channel when it is built."""

    name: str
    """The channel's name, which is the entry point's: the adapter's `name`."""
    clock: Clock
    timeline: Timeline
    rates: Callable[[RateLimits], RateLimits]
    """The limits to declare, from those of the platform: the setting `rate` replaces the account's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKind:
    """A kind of channel."""

    settings: type[PostingSettings]
    """The class of its table: every setting has a default, and the kinds of values that a table can hold."""
    build: Callable[[Any, ChannelContext], Channel]
    """The adapter of one account from its settings. Called in a thread, at most ten seconds: it connects to
    nothing, `run` does. A ConfigurationError is shown to the operator."""
    identity: Callable[[Any], str] | None = None
    """From the settings, what one process at a time may receive with. None: the setting that the channel
    needs, if it is a secret, else no limit."""
