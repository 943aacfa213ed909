"""Check rules across the settings of the posting channels.

A channel that receives over HTTP never starts without the secret that proves a request's origin.
Not here: the format of a token (`token_formats`).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from gateway.config.channels import TelegramSettings
from gateway.config.cross_checks import Rule
from gateway.config.platform_ids import person_of
from gateway.config.settings import Settings
from gateway.config.value_checks import is_loopback

_TELEGRAM_PORTS = (443, 80, 88, 8443)
"""The ports on which Telegram calls a webhook (core.telegram.org/bots/api#setwebhook)."""
_TELEGRAM = "channels.telegram"
_SLACK = "channels.slack"


def _deny_meets_allow(channel: str) -> Rule:
    def broken(settings: Settings) -> bool:
        chosen = settings.channels.posting()[channel]
        people = {person_of(entry) for entry in chosen.allow}
        return not people.isdisjoint(chosen.deny)

    path = f"channels.{channel}"
    return Rule(
        path=f"{path}.deny",
        reads=(f"{path}.allow", f"{path}.deny"),
        broken=broken,
        what=f"names somebody whom {path}.allow lets in",
        fix="remove the person from one of the two",
    )


def _off_without_credential(channel: str, key: str) -> Rule:
    """A rule against a section that changes settings without the token that the channel needs to run."""

    def broken(settings: Settings) -> bool:
        section = settings.channels.posting()[channel]
        return section.enabled and section.credential is None and section != type(section)()

    path = f"channels.{channel}"
    return Rule(
        path=f"{path}.{key}",
        reads=(f"{path}.enabled", f"{path}.{key}"),
        broken=broken,
        what=f"is not set, but other settings of [{path}] are: the channel could not start",
        fix=f"set it to the bot's token by reference, or set {path}.enabled to false",
    )


def _wants_webhook(telegram: TelegramSettings) -> bool:
    return telegram.active and telegram.mode == "webhook"


def _webhook_host_is_foreign(settings: Settings) -> bool:
    telegram = settings.channels.telegram
    if not _wants_webhook(telegram) or telegram.webhook_url is None:
        return False
    address = urlsplit(telegram.webhook_url)
    ours = {urlsplit(origin).netloc for origin in settings.server.public_origins}
    return not is_loopback(address.hostname or "") and address.netloc not in ours


def _webhook_port_is_closed(settings: Settings) -> bool:
    telegram = settings.channels.telegram
    if not _wants_webhook(telegram) or telegram.webhook_url is None or telegram.api_base is not None:
        return False
    return (urlsplit(telegram.webhook_url).port or _TELEGRAM_PORTS[0]) not in _TELEGRAM_PORTS


CHANNEL_RULES = (
    Rule(
        path=f"{_TELEGRAM}.webhook_url",
        reads=(f"{_TELEGRAM}.token", f"{_TELEGRAM}.mode", f"{_TELEGRAM}.webhook_url"),
        broken=lambda settings: (
            _wants_webhook(settings.channels.telegram) and settings.channels.telegram.webhook_url is None
        ),
        what=f'is not set, but {_TELEGRAM}.mode is "webhook"',
        fix="set it to the public address of this server, like https://bot.example.org/telegram, "
        f'or set {_TELEGRAM}.mode to "polling"',
        caused_by=f"{_TELEGRAM}.mode",
    ),
    Rule(
        path=f"{_TELEGRAM}.webhook_secret",
        reads=(f"{_TELEGRAM}.token", f"{_TELEGRAM}.mode", f"{_TELEGRAM}.webhook_secret"),
        broken=lambda settings: (
            _wants_webhook(settings.channels.telegram) and settings.channels.telegram.webhook_secret is None
        ),
        what=f'is not set, but {_TELEGRAM}.mode is "webhook": anybody could send messages as Telegram',
        fix='make a secret with "openssl rand -hex 32" and refer to it, '
        f'or set {_TELEGRAM}.mode to "polling"',
        caused_by=f"{_TELEGRAM}.mode",
    ),
    Rule(
        path=f"{_TELEGRAM}.webhook_url",
        reads=(f"{_TELEGRAM}.webhook_url", f"{_TELEGRAM}.mode", "server.public_origins"),
        broken=_webhook_host_is_foreign,
        what="names a host that is not in server.public_origins, so the server would refuse Telegram's calls",
        fix="add scheme and host of the address to server.public_origins",
    ),
    Rule(
        path=f"{_TELEGRAM}.webhook_url",
        reads=(f"{_TELEGRAM}.webhook_url", f"{_TELEGRAM}.mode", f"{_TELEGRAM}.api_base"),
        broken=_webhook_port_is_closed,
        what="names a port that Telegram does not call",
        fix="use one of the ports 443, 80, 88 and 8443",
    ),
    Rule(
        path=f"{_SLACK}.app_token",
        reads=(f"{_SLACK}.bot_token", f"{_SLACK}.mode", f"{_SLACK}.app_token"),
        broken=lambda settings: (
            settings.channels.slack.active
            and settings.channels.slack.mode == "socket"
            and settings.channels.slack.app_token is None
        ),
        what=f'is not set, but {_SLACK}.mode is "socket"',
        fix="set it to an app-level token (xapp-…) with the scope connections:write, "
        f'or set {_SLACK}.mode to "http"',
        caused_by=f"{_SLACK}.mode",
    ),
    Rule(
        path=f"{_SLACK}.signing_secret",
        reads=(f"{_SLACK}.bot_token", f"{_SLACK}.mode", f"{_SLACK}.signing_secret"),
        broken=lambda settings: (
            settings.channels.slack.active
            and settings.channels.slack.mode == "http"
            and settings.channels.slack.signing_secret is None
        ),
        what=f'is not set, but {_SLACK}.mode is "http": anybody could send messages as Slack',
        fix=f'set it to the signing secret of the app, by reference, or set {_SLACK}.mode to "socket"',
        caused_by=f"{_SLACK}.mode",
    ),
    _off_without_credential("telegram", "token"),
    _off_without_credential("slack", "bot_token"),
    _off_without_credential("discord", "token"),
    *(_deny_meets_allow(channel) for channel in ("telegram", "slack", "discord")),
)
