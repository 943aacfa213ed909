"""The entry point: IRC as a kind of channel."""

from __future__ import annotations

from gateway.config.channel_kinds import ChannelContext, ChannelKind
from parlour_irc.adapter import DEFAULT_RATES, IrcAdapter
from parlour_irc.settings import IrcSettings


def build(settings: IrcSettings, context: ChannelContext) -> IrcAdapter:
    """The adapter of one account, which connects when it runs."""
    return IrcAdapter(settings, context.clock, name=context.name, rates=context.rates(DEFAULT_RATES))


def identity(settings: IrcSettings) -> str:
    """One process at a time may be on a server under a nick."""
    return f"{settings.server}:{settings.port} {settings.nick}".casefold()


irc = ChannelKind(settings=IrcSettings, build=build, identity=identity)
