"""What `parlour init` says about each platform: where the token is, and what to click afterwards."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import adapters.slack
from adapters.discord.settings import invite_link
from gateway.cli.init.plan import ChannelPlan
from gateway.config.channel_plugins import channel_plugin, offered_channels
from gateway.config.channels import POSTING
from gateway.config.posting import PostingSettings
from pipeline.domain.errors import ConfigurationError

WEB = "web"

TOKENS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "telegram": {"token": "The bot's token"},
        "slack": {"bot_token": "The bot's token (xoxb-…)", "app_token": "The app-level token (xapp-…)"},
        "discord": {"token": "The bot's token"},
    }
)
"""The secrets of each shipped channel, by key, with the words that ask for them."""

_WHERE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "telegram": (
            "In Telegram, open @BotFather (with the blue tick), press Start, send /newbot and follow it.",
            "Copy the token from its answer.",
        ),
        "slack": (
            "On https://api.slack.com/apps press Create New App, From a manifest, and choose the workspace.",
            "Tab YAML: paste what `parlour init --slack-manifest` prints in another terminal; Next, Create.",
            "Page Basic Information, App-Level Tokens: Generate, with the scope connections:write: xapp-….",
            "Page Install App: Install, Allow. Page OAuth & Permissions: the Bot User OAuth Token, xoxb-….",
        ),
        "discord": (
            "On https://discord.com/developers/applications press New Application and give it a name.",
            "Page Bot: turn MESSAGE CONTENT INTENT on, Save Changes.",
            "Page Bot: press Reset Token and copy the token; it is shown once.",
        ),
    }
)


def channel_names() -> tuple[str, ...]:
    """The channels that can be chosen: the page, the shipped ones, and those of plug-ins."""
    return (WEB, *POSTING, *sorted(offered_channels()))


def where_from(channel: str) -> tuple[str, ...]:
    """The steps to the channel's token; none for one of a plug-in."""
    return _WHERE.get(channel, ())


def asked_secrets(channel: str) -> Mapping[str, str]:
    """The secrets to ask for, by key, with the words of the question. Raises ConfigurationError for a broken
    plug-in."""
    if channel in TOKENS:
        return TOKENS[channel]
    section = plugin_settings(channel)
    return {
        key: f"{key} (Enter if there is none)" if key != section.needed() else key for key in section.SECRETS
    }


def asked_values(channel: str) -> tuple[str, ...]:
    """The other settings without which the channel stays off, by key. Raises as `asked_secrets`."""
    if channel in TOKENS:
        return ()
    needed = plugin_settings(channel).needed()
    return () if needed in plugin_settings(channel).SECRETS else (needed,)


def is_required(channel: str, key: str) -> bool:
    """Whether the channel cannot run without the secret `key`."""
    return channel in TOKENS or plugin_settings(channel).needed() == key


def plugin_settings(channel: str) -> type[PostingSettings]:
    """The class of a plug-in channel's table. Raises ConfigurationError where the plug-in is broken."""
    [plugin, *_] = channel_plugin(channel)
    if plugin.problem:
        raise ConfigurationError(
            f"channels.{channel}: its plug-in {plugin.package} is broken: {plugin.problem}"
        )
    section: type[PostingSettings] = plugin.value.kind.settings
    return section


def next_steps(channel: ChannelPlan) -> tuple[str, ...]:
    """What to do on the platform once `parlour serve` runs."""
    bot = channel.bot or "the bot"
    match channel.name:
        case "telegram":
            return (
                f"Open the chat with {bot} in Telegram and press Start: it shows you a code.",
                f'In a group: add {bot}, admit it with allow = ["room:ID"], and mention the bot there.',
                'For rooms = "all" turn privacy mode off first: /setprivacy at @BotFather.',
            )
        case "slack":
            return (
                f"In Slack, open Apps, {bot}, and write to it in Messages: it shows you a code.",
                f"In a channel: /invite @{channel.bot or 'Parlour'}, and mention it there.",
            )
        case "discord":
            return (
                f"Invite it to a server: {_invitation(channel)}",
                "Write to it in private (click its name in the server): it shows you a code.",
            )
    return ("Write to the bot in private: it shows you a code.",)


def slack_manifest() -> str:
    """The manifest of the Slack app that Parlour needs, as YAML."""
    [folder] = adapters.slack.__path__
    return (Path(folder) / "manifest.yaml").read_text(encoding="utf-8")


def _invitation(channel: ChannelPlan) -> str:
    """The link that adds the bot to a server. A Discord token begins with the bot's id, which is the
    application's, too, except for very old ones."""
    number = "APPLICATION_ID"
    for secret in channel.secrets:
        first = (secret.value or "").partition(".")[0]
        try:
            decoded = base64.b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
        except (binascii.Error, ValueError):
            continue
        number = decoded if decoded.isdecimal() else number
    return invite_link(number)
