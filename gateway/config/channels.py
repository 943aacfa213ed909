"""The settings of the channels: the page, the terminal, and the posting channels with their accounts.

Not here: rules across settings (`channel_rules`) and the format of a token (`token_formats`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gateway.config.channel_kinds import ChannelKind
from gateway.config.platform_ids import DISCORD, SLACK, TELEGRAM
from gateway.config.posting import PostingSettings, allow_setting, deny_setting
from gateway.config.secrets import SecretRef
from gateway.config.section import PathSetting, Section, setting
from gateway.config.value_checks import (
    check_gateway_url,
    check_webhook_url,
)
from pipeline.domain.frozen import dataclass

POSTING = ("telegram", "slack", "discord")
"""The channels whose tables may be repeated: [[channels.telegram]]."""
MORE = "_more"
"""The suffix of the fields that hold their second and further tables."""
WEB_TOKEN_FILE = "web-token"  # noqa: S105 - a file name, not a token


class WebSettings(Section):
    """[channels.web]: the web page."""

    enabled: bool = setting(default=True, description="Whether the web page and its API are served.")
    token: SecretRef | None = setting(
        None,
        "The token that opens the web page, by reference. When absent, a random one is made in the file "
        f"{WEB_TOKEN_FILE} of data.dir, mode 600.",
        example="file:secrets/web-token",
    )
    max_message_chars: int = setting(8_000, "The longest message, in characters.", ge=1, le=100_000)
    texts: PathSetting | None = setting(
        None,
        "A folder with further languages of the page: a file of texts for each, such as pt.json. See "
        "docs/guides/page-languages.md.",
        example="page-languages",
    )
    editor: tuple[Annotated[str, Field(min_length=1, max_length=60)], ...] = setting(
        (),
        "Who may draw, save and run workflows on the page: owner for everyone who has the access token, and "
        "names of invited people. Empty: no one. See docs/guides/workflows.md.",
        example=["owner", "Ann"],
        expected="a list of owner and names of invited people",
        max_length=50,
        strict=False,
    )


class ConsoleSettings(Section):
    """[channels.console]: the terminal."""

    enabled: bool = setting(
        default=False, description="Whether the terminal is a channel; `parlour chat` turns it on."
    )


class TelegramSettings(PostingSettings):
    """[channels.telegram]: a Telegram bot; needs nothing but its token."""

    SECRETS = ("token", "webhook_secret")

    token: SecretRef | None = setting(
        None, "The bot's token from @BotFather, by reference.", example="file:secrets/telegram-token"
    )
    mode: Literal["polling", "webhook"] = setting(
        "polling",
        "How messages arrive: polling asks Telegram, webhook lets Telegram call webhook_url.",
    )
    webhook_url: Annotated[str | None, AfterValidator(check_webhook_url)] = setting(
        None,
        "The public address that Telegram calls. Its host must be in server.public_origins.",
        example="https://bot.example.org/telegram",
        expected="an address that starts with https:// and has a path",
    )
    webhook_secret: SecretRef | None = setting(
        None,
        "What proves that a call comes from Telegram, by reference: 32 to 256 of the characters A-Z, a-z, "
        "0-9, _ and -.",
        example="file:secrets/telegram-webhook-secret",
    )
    replies: Literal["post", "edit", "plain"] = setting(
        "post",
        "How an answer is shown: post posts it, or turns its preview into the answer, and afterwards deletes "
        "duplicates after a lost confirmation; edit posts a placeholder first and turns it into the answer, "
        "so that an answer never shows twice; plain edits nothing: an answer may show twice after a crash.",
    )

    allow: tuple[Annotated[str, AfterValidator(TELEGRAM.check_allowed)], ...] = allow_setting(
        "dm:1001", "room:-1002003", "room:-1002004/1001"
    )
    deny: tuple[Annotated[str, AfterValidator(TELEGRAM.check_person)], ...] = deny_setting("1009")


class SlackSettings(PostingSettings):
    """[channels.slack]: a Slack app; needs its bot token and its app-level token."""

    SECRETS = ("bot_token", "app_token", "signing_secret")

    bot_token: SecretRef | None = setting(
        None,
        "The bot's token (xoxb-…) of the page OAuth & Permissions, by reference.",
        example="file:secrets/slack-bot-token",
    )
    app_token: SecretRef | None = setting(
        None,
        'The app-level token (xapp-…) with the scope connections:write, by reference. mode = "socket" needs '
        "it.",
        example="file:secrets/slack-app-token",
    )
    signing_secret: SecretRef | None = setting(
        None,
        'The signing secret of the page Basic Information, by reference. mode = "http" needs it.',
        example="file:secrets/slack-signing-secret",
    )
    mode: Literal["socket", "http"] = setting(
        "socket",
        "How messages arrive: socket opens a connection to Slack, http lets Slack call this server.",
    )

    allow: tuple[Annotated[str, AfterValidator(SLACK.check_allowed)], ...] = allow_setting(
        "dm:U012AB3CD", "room:C024BE7LR", "room:C024BE7LS/U012AB3CD"
    )
    deny: tuple[Annotated[str, AfterValidator(SLACK.check_person)], ...] = deny_setting("U012AB3CE")


class DiscordSettings(PostingSettings):
    """[channels.discord]: a Discord bot; needs nothing but its token."""

    SECRETS = ("token",)

    token: SecretRef | None = setting(
        None,
        "The bot's token of the page Bot, by reference.",
        example="file:secrets/discord-token",
    )
    gateway_url: Annotated[str | None, AfterValidator(check_gateway_url)] = setting(
        None,
        "The address of Discord's gateway, when it is not the one that the API names.",
        example="ws://127.0.0.1:8082",
        expected="an address that starts with ws:// or wss://",
    )

    allow: tuple[Annotated[str, AfterValidator(DISCORD.check_allowed)], ...] = allow_setting(
        "dm:80351110224678912", "room:41771983423143937"
    )
    deny: tuple[Annotated[str, AfterValidator(DISCORD.check_person)], ...] = deny_setting("80351110224678913")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAccount:
    """One account of a posting channel."""

    path: str
    """Of its table: `channels.telegram`, or `channels.telegram.2` for the second one."""
    channel: str
    settings: PostingSettings
    kind: ChannelKind | None = None
    """For a channel of a plug-in: how it is built."""

    @property
    def key(self) -> tuple[str, str]:
        """As `ThreadKey.account_key` of its threads."""
        return self.channel, self.settings.account


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedChannel:
    """A channel that a plug-in adds and that the configuration has a table of."""

    name: str
    package: str
    """The distribution with its version, such as `parlour-irc 1.0`."""
    kind: ChannelKind | None = None
    """None for one that is left out."""
    tables: tuple[PostingSettings, ...] = ()
    problem: str = ""
    """Why it is left out: its table could not be read either."""


class ChannelsSettings(Section):
    """[channels]: where people talk to the bot."""

    web: WebSettings = WebSettings()
    console: ConsoleSettings = ConsoleSettings()
    telegram: TelegramSettings = TelegramSettings()
    slack: SlackSettings = SlackSettings()
    discord: DiscordSettings = DiscordSettings()
    telegram_more: tuple[TelegramSettings, ...] = Field(default=(), strict=False)
    """The second and further tables [[channels.telegram]]; the first is `telegram`."""
    slack_more: tuple[SlackSettings, ...] = Field(default=(), strict=False)
    discord_more: tuple[DiscordSettings, ...] = Field(default=(), strict=False)
    plugged: Any = ()
    """`AddedChannel`s. No setting, and not checked by pydantic, which would rebuild the foreign settings."""

    @property
    def added(self) -> tuple[AddedChannel, ...]:
        """The channels of plug-ins, also those that are left out."""
        return tuple(self.plugged)

    def accounts(self) -> tuple[ChannelAccount, ...]:
        """Every account on which other people write, also those that are off. Without the channels of
        plug-ins that are left out."""
        return (
            *_accounts("telegram", self.telegram, self.telegram_more),
            *_accounts("slack", self.slack, self.slack_more),
            *_accounts("discord", self.discord, self.discord_more),
            *(
                account
                for one in self.added
                if one.tables
                for account in _accounts(one.name, one.tables[0], one.tables[1:], one.kind)
            ),
        )

    def secret_refs(self) -> dict[str, SecretRef | None]:
        """Every secret of a channel by dotted path; None if it is not set."""
        return {
            "channels.web.token": self.web.token,
            **{
                f"{account.path}.{key}": reference
                for account in self.accounts()
                for key, reference in account.settings.secret_refs().items()
            },
        }


def label_of(account: ChannelAccount, accounts: Sequence[ChannelAccount]) -> str:
    """The account for people: the channel's name, with the account's where there are several."""
    several = sum(other.channel == account.channel for other in accounts) > 1
    return f"{account.channel} ({account.settings.account})" if several else account.channel


def _accounts(
    channel: str,
    first: PostingSettings,
    more: Sequence[PostingSettings],
    kind: ChannelKind | None = None,
) -> list[ChannelAccount]:
    path = f"channels.{channel}"
    return [
        ChannelAccount(path=path, channel=channel, settings=first, kind=kind),
        *(
            ChannelAccount(path=f"{path}.{number}", channel=channel, settings=settings, kind=kind)
            for number, settings in enumerate(more, start=2)
        ),
    ]
