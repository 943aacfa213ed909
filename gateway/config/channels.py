"""The settings of the channels: the page, the terminal, and the posting channels with their accounts.

Not here: rules across settings (`channel_rules`) and the format of a token (`token_formats`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from gateway.config.platform_ids import DISCORD, SLACK, TELEGRAM
from gateway.config.secrets import SecretRef
from gateway.config.section import Section, setting
from gateway.config.value_checks import (
    check_account,
    check_gateway_url,
    check_platform_base,
    check_webhook_url,
)
from pipeline.domain.frozen import dataclass

POSTING = ("telegram", "slack", "discord")
"""The channels whose tables may be repeated: [[channels.telegram]]."""
MORE = "_more"
"""The suffix of the fields that hold their second and further tables."""
WEB_TOKEN_FILE = "web-token"  # noqa: S105 - a file name, not a token

Access = Literal["pairing", "list", "open"]
Rooms = Literal["addressed", "all", "never"]
_LISTED = 1_000


def _allow(*example: str) -> Any:
    return setting(
        (),
        "Who may write independently of access: dm:USER in private, room:CHAT everybody in that room, "
        "room:CHAT/USER one person there; all by the platform's ids.",
        example=example,
        expected=f"a list of up to {_LISTED} of dm:USER, room:CHAT and room:CHAT/USER",
        max_length=_LISTED,
        strict=False,
    )


def _deny(*example: str) -> Any:
    return setting(
        (),
        "Who may never write, by the platform's ids of the people; overrides every other setting.",
        example=example,
        expected=f"a list of up to {_LISTED} ids",
        max_length=_LISTED,
        strict=False,
    )


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


class ConsoleSettings(Section):
    """[channels.console]: the terminal."""

    enabled: bool = setting(
        default=False, description="Whether the terminal is a channel; `parlour chat` turns it on."
    )


class PostingSettings(Section):
    """[channels.*]: the common settings of the posting channels."""

    SECRETS: ClassVar[tuple[str, ...]] = ()
    """The keys of its secrets; the first is the bot's token, without which the channel stays off."""

    enabled: bool = setting(
        default=True, description="Whether the channel is on. It starts only if the bot's token is set."
    )
    account: Annotated[str, AfterValidator(check_account)] = setting(
        "main",
        "The name under which the store keeps this bot's conversations. A new name starts without any. Of "
        "several tables of one channel, each needs its own.",
        expected="1 to 32 of the characters a-z, 0-9 and -",
    )
    agent: str | None = setting(
        None,
        "The agent that answers on this account where no route says otherwise: a NAME of [agents.NAME].",
        example="default",
        min_length=1,
        max_length=32,
    )
    api_base: Annotated[str | None, AfterValidator(check_platform_base)] = setting(
        None,
        "The address of the platform's API, when it is not the platform's own.",
        example="http://127.0.0.1:8081",
        expected="an address that starts with http:// or https://",
    )
    access: Access = setting(
        "pairing",
        "Who may write to the bot: with pairing those in allow and those whom the operator lets in by a "
        "code; with list those in allow; with open everybody, within open_messages_per_day and open_people.",
    )
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    open_messages_per_day: int = setting(
        100, 'With access = "open": how many messages one person may write in a day.', ge=1, le=100_000
    )
    open_people: int = setting(
        200, 'With access = "open": how many different people may write in a day.', ge=1, le=100_000
    )
    rooms: Rooms = setting(
        "addressed",
        "When the bot answers in rooms with several people: when it is addressed, always, or never.",
    )
    hear_rooms: bool = setting(
        default=False,
        description='With rooms = "addressed": whether voice notes of people who may write to the bot are '
        "transcribed, and answered when they say its name.",
    )
    room_messages: int = setting(
        20,
        "How many of the last messages of a room or thread, other people's included, the model gets when the "
        "bot is addressed there; 0 for none. They are not stored.",
        ge=0,
        le=100,
    )
    rate: float | None = setting(
        None,
        "The most posts and edits in a second over all chats; 0 sets no limit. When absent: the platform's "
        "own limit.",
        example=20,
        ge=0,
        le=1_000,
    )
    previews: bool = setting(
        default=True, description="Whether the answer is shown while it is written; else only when finished."
    )
    show_work: Literal["quiet", "normal", "detailed"] | None = setting(
        None,
        "How much of the work is shown on this channel; when absent: agent.show_work.",
        example="quiet",
    )

    @property
    def credential(self) -> SecretRef | None:
        """The bot's token; without it the channel stays off."""
        found: SecretRef | None = getattr(self, self.SECRETS[0])
        return found

    @property
    def active(self) -> bool:
        """Whether the channel is to run."""
        return self.enabled and self.credential is not None


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

    allow: tuple[Annotated[str, AfterValidator(TELEGRAM.check_allowed)], ...] = _allow(
        "dm:1001", "room:-1002003", "room:-1002004/1001"
    )
    deny: tuple[Annotated[str, AfterValidator(TELEGRAM.check_person)], ...] = _deny("1009")


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

    allow: tuple[Annotated[str, AfterValidator(SLACK.check_allowed)], ...] = _allow(
        "dm:U012AB3CD", "room:C024BE7LR", "room:C024BE7LS/U012AB3CD"
    )
    deny: tuple[Annotated[str, AfterValidator(SLACK.check_person)], ...] = _deny("U012AB3CE")


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

    allow: tuple[Annotated[str, AfterValidator(DISCORD.check_allowed)], ...] = _allow(
        "dm:80351110224678912", "room:41771983423143937"
    )
    deny: tuple[Annotated[str, AfterValidator(DISCORD.check_person)], ...] = _deny("80351110224678913")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAccount:
    """One account of a posting channel."""

    path: str
    """Of its table: `channels.telegram`, or `channels.telegram.2` for the second one."""
    channel: str
    settings: PostingSettings

    @property
    def key(self) -> tuple[str, str]:
        """As `ThreadKey.account_key` of its threads."""
        return self.channel, self.settings.account


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

    def accounts(self) -> tuple[ChannelAccount, ...]:
        """Every account of the posting channels, also those that are off."""
        return (
            *_accounts("telegram", self.telegram, self.telegram_more),
            *_accounts("slack", self.slack, self.slack_more),
            *_accounts("discord", self.discord, self.discord_more),
        )

    def secret_refs(self) -> dict[str, SecretRef | None]:
        """Every secret of a channel by dotted path; None if it is not set."""
        return {
            "channels.web.token": self.web.token,
            **{
                f"{account.path}.{key}": getattr(account.settings, key)
                for account in self.accounts()
                for key in account.settings.SECRETS
            },
        }


def label_of(account: ChannelAccount, accounts: Sequence[ChannelAccount]) -> str:
    """The account for people: the channel's name, with the account's where there are several."""
    several = sum(other.channel == account.channel for other in accounts) > 1
    return f"{account.channel} ({account.settings.account})" if several else account.channel


def _accounts(channel: str, first: PostingSettings, more: Sequence[PostingSettings]) -> list[ChannelAccount]:
    path = f"channels.{channel}"
    return [
        ChannelAccount(path=path, channel=channel, settings=first),
        *(
            ChannelAccount(path=f"{path}.{number}", channel=channel, settings=settings)
            for number, settings in enumerate(more, start=2)
        ),
    ]
