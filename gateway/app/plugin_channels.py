"""Build an account of a plug-in's channel; a mistake of the plug-in is the problem of that account alone.

A part of the composition root: only `platforms` calls it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from adapters.channel import (
    Acceptance,
    Channel,
    ChannelCapabilities,
    OnInbound,
    PostingChannel,
    RateLimits,
    ShowingChannel,
    Timeline,
)
from gateway.config import SecretRef
from gateway.config.channel_kinds import ChannelContext, ChannelKind
from gateway.config.channels import ChannelAccount
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError, InvalidInput
from pipeline.domain.ids import AccountKey
from pipeline.domain.messages import Inbound
from pipeline.plugins import ForeignCodeFailed, in_time

_log = logging.getLogger(__name__)

BUILD_S: Final = 10.0
"""Seconds that building one account may take."""


class ChannelRefused(ConfigurationError):
    """An account of a plug-in's channel cannot be built; the text says why."""


def build_adapter(
    account: ChannelAccount,
    timeline: Timeline,
    clock: Clock,
    rates: Callable[[RateLimits], RateLimits],
) -> Channel:
    """The adapter of the account, not yet running. Raises ChannelRefused."""
    kind = _kind(account)
    context = ChannelContext(name=account.channel, clock=clock, timeline=timeline, rates=rates)
    try:
        return in_time(
            lambda: _checked(kind.build(account.settings, context), account),
            BUILD_S,
            name=f"channel {account.channel}",
        )
    except TimeoutError:
        raise ChannelRefused(f"building it took longer than {BUILD_S:g} s") from None
    except ForeignCodeFailed as failed:
        if isinstance(failed.error, ConfigurationError):
            raise ChannelRefused(str(failed.error)) from None
        # Not its text, which may repeat a secret that it has read.
        _log.debug("a channel could not be built", exc_info=failed.error)
        raise ChannelRefused(f"building it failed with {type(failed.error).__name__}") from None


def identity_of(account: ChannelAccount) -> Callable[[], str] | None:
    """Reads what one process at a time may receive with; None if any number may."""
    section, identity = account.settings, _kind(account).identity
    if identity is not None:
        return lambda: str(identity(section))
    needed = getattr(section, section.needed())
    return needed.resolve if isinstance(needed, SecretRef) else None


def only_own(account: AccountKey, accept: OnInbound) -> OnInbound:
    """`accept` for what the channel brings in on its own account; everything else raises InvalidInput. A
    mistake in a plug-in must not let a stranger write as another channel's owner."""

    async def checked(item: Inbound) -> Acceptance:
        if item.thread.account_key != account:
            raise InvalidInput(f"{account[0]}: a message names the channel {item.thread.channel!r}; refused")
        return await accept(item)

    return checked


def _kind(account: ChannelAccount) -> ChannelKind:
    if account.kind is None:
        raise LookupError("a shipped channel has no kind")
    return account.kind


def _checked(adapter: Channel, account: ChannelAccount) -> Channel:
    """Raises ConfigurationError for an object that the gateway cannot run."""
    if isinstance(adapter, PostingChannel) == isinstance(adapter, ShowingChannel):
        raise ConfigurationError(
            f"its build returned {type(adapter).__name__}, which is not a PostingChannel or a ShowingChannel"
        )
    if not isinstance(adapter.capabilities, ChannelCapabilities):
        raise ConfigurationError("its capabilities are not ChannelCapabilities")
    if (adapter.name, adapter.account) != account.key:
        raise ConfigurationError(
            f"it calls itself {adapter.name}:{adapter.account}, and not {':'.join(account.key)}"
        )
    return adapter
