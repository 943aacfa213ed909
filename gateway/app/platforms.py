"""Build the channels on which other people write, as the settings activate them. Imports the SDK of an active
channel only.

A part of the composition root: only `bootstrap` calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aiohttp import web

from adapters.channel import Channel, RateLimits, Timeline
from gateway.access.policy import AccessRule
from gateway.app.plugin_channels import build_adapter, identity_of
from gateway.config import SecretRef, Settings
from gateway.config.channels import ChannelAccount, DiscordSettings, SlackSettings, TelegramSettings
from gateway.config.posting import PostingSettings
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltChannel:
    """A channel and what else the gateway must know about it."""

    adapter: Channel
    rule: AccessRule
    room_messages: int
    """How many of a room's newest messages may be read."""
    token: Callable[[], str] | None
    """Reads the bot's current token. One process at a time may receive with it; None: any number may."""
    routes: tuple[web.RouteDef, ...] = ()
    foreign: bool = False
    """Whether a plug-in adds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A channel, or an account of one, that is configured and cannot be built."""

    channel: str
    account: str
    """`*` for all accounts: their table could not be read either."""
    problem: str
    """For the operator."""

    @property
    def label(self) -> str:
        """The channel for people, with the account where it is known."""
        return self.channel if self.account == "*" else f"{self.channel} ({self.account})"


def built_channels(
    settings: Settings, timeline: Timeline, clock: Clock
) -> tuple[tuple[BuiltChannel, ...], tuple[LeftOut, ...]]:
    """Every active account on which other people write, not yet running; and what is left out, because a
    plug-in is broken. Raises ConfigurationError with a readable message."""
    built = posting_channels(settings, timeline, clock)
    left_out = [
        LeftOut(channel=one.name, account="*", problem=f"its plug-in {one.package} is broken: {one.problem}")
        for one in settings.channels.added
        if one.problem
    ]
    for account in settings.channels.accounts():
        if account.kind is None or not account.settings.active:
            continue
        try:
            built.append(_plugged(account, timeline, clock))
        except ConfigurationError as error:
            name = account.settings.account
            left_out.append(LeftOut(channel=account.channel, account=name, problem=str(error)))
    return tuple(built), tuple(left_out)


def posting_channels(settings: Settings, timeline: Timeline, clock: Clock) -> list[BuiltChannel]:
    """Every active account of the shipped posting channels, not yet running. Raises ConfigurationError with a
    readable message."""
    built = []
    for account in settings.channels.accounts():
        match account.settings:
            case TelegramSettings(active=True) as section:
                built.append(_telegram(section, account.path, clock))
            case SlackSettings(active=True) as section:
                built.append(_slack(section, account.path, clock))
            case DiscordSettings(active=True) as section:
                built.append(_discord(section, account.path, timeline, clock))
    return built


def access_rule(settings: PostingSettings) -> AccessRule:
    """Who may write on the channel, from its settings. Raises ConfigurationError with a readable message."""
    return AccessRule.of(
        mode=settings.access,
        allow=settings.allow,
        deny=settings.deny,
        rooms=settings.rooms,
        hear_rooms=settings.hear_rooms,
        room_checks_per_hour=settings.room_checks_per_hour,
        open_messages_per_day=settings.open_messages_per_day,
        open_people=settings.open_people,
    )


def _telegram(settings: TelegramSettings, path: str, clock: Clock) -> BuiltChannel:
    from adapters.telegram import adapter as telegram  # noqa: PLC0415 - an SDK is loaded where it is used
    from adapters.telegram import rate_limits  # noqa: PLC0415 - as above
    from adapters.telegram import settings as wanted  # noqa: PLC0415 - as above

    token = _reader(settings.token, f"{path}.token")
    made = telegram.TelegramAdapter(
        wanted.TelegramOptions(
            token=token,
            account=settings.account,
            api_base=settings.api_base,
            mode=settings.mode,
            webhook_url=settings.webhook_url,
            webhook_secret=_optional(settings.webhook_secret),
            replies=settings.replies,
            previews=settings.previews,
            acknowledges=settings.reactions == "taken",
            rates=_rates(settings, rate_limits.DEFAULT_RATES),
        ),
        clock,
    )
    routes = tuple(made.routes()) if settings.mode == "webhook" else ()
    return BuiltChannel(
        adapter=made,
        rule=access_rule(settings),
        room_messages=settings.room_messages,
        token=token,
        routes=routes,
    )


def _slack(settings: SlackSettings, path: str, clock: Clock) -> BuiltChannel:
    from adapters.slack import adapter as slack  # noqa: PLC0415 - an SDK is loaded where it is used
    from adapters.slack import rate_limits  # noqa: PLC0415 - as above
    from adapters.slack import settings as wanted  # noqa: PLC0415 - as above

    token = _reader(settings.bot_token, f"{path}.bot_token")
    made = slack.SlackAdapter(
        wanted.SlackOptions(
            bot_token=token,
            app_token=_optional(settings.app_token),
            signing_secret=_optional(settings.signing_secret),
            mode=settings.mode,
            account=settings.account,
            api_base=settings.api_base,
            previews=settings.previews,
            reactions=settings.reactions,
            rates=_rates(settings, rate_limits.DEFAULT_RATES),
        ),
        clock,
    )
    routes = tuple(made.routes()) if settings.mode == "http" else ()
    return BuiltChannel(
        adapter=made,
        rule=access_rule(settings),
        room_messages=settings.room_messages,
        token=token,
        routes=routes,
    )


def _discord(settings: DiscordSettings, path: str, timeline: Timeline, clock: Clock) -> BuiltChannel:
    from adapters.discord import adapter as discord  # noqa: PLC0415 - an SDK is loaded where it is used
    from adapters.discord import rate_limits  # noqa: PLC0415 - as above
    from adapters.discord import settings as wanted  # noqa: PLC0415 - as above

    token = _reader(settings.token, f"{path}.token")
    rule = access_rule(settings)
    made = discord.DiscordAdapter(
        wanted.DiscordOptions(
            token=token,
            account=settings.account,
            api_base=settings.api_base,
            gateway_url=settings.gateway_url,
            previews=settings.previews,
            acknowledges=settings.reactions == "taken",
            rates=_rates(settings, rate_limits.DEFAULT_RATES),
            people=tuple(sorted(rule.people - rule.deny)),
            rooms=tuple(sorted(rule.whole_rooms | {chat for chat, _ in rule.members})),
        ),
        timeline,
        clock,
    )
    return BuiltChannel(adapter=made, rule=rule, room_messages=settings.room_messages, token=token)


def _plugged(account: ChannelAccount, timeline: Timeline, clock: Clock) -> BuiltChannel:
    """An account of a plug-in's channel. Raises ConfigurationError."""
    section = account.settings

    def rates(platform: RateLimits) -> RateLimits:
        return _rates(section, platform) or platform

    adapter = build_adapter(account, timeline, clock, rates)
    return BuiltChannel(
        adapter=adapter,
        rule=access_rule(section),
        room_messages=section.room_messages,
        token=identity_of(account),
        foreign=True,
    )


def _reader(reference: SecretRef | None, path: str) -> Callable[[], str]:
    if reference is None:
        raise ConfigurationError(f"{path}: it is not set")
    return reference.resolve


def _optional(reference: SecretRef | None) -> Callable[[], str] | None:
    return None if reference is None else reference.resolve


def _rates(settings: PostingSettings, platform: RateLimits) -> RateLimits | None:
    """The configured rate limits; None for the platform's own. A setting of 0 removes every limit."""
    if settings.rate is None:
        return None
    if settings.rate == 0:
        return RateLimits(edit_interval_s=platform.edit_interval_s)
    return replace(platform, account_per_s=settings.rate)
