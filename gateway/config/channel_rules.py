"""Check rules across the settings of the posting channels' accounts.

A channel that receives over HTTP never starts without the secret that proves a request's origin.
Not here: the format of a token (`token_formats`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from gateway.config.channels import ChannelAccount, SlackSettings, TelegramSettings
from gateway.config.cross_checks import CrossCheck
from gateway.config.platform_ids import person_of
from gateway.config.settings import Settings
from gateway.config.value_checks import is_loopback

_TELEGRAM_PORTS = (443, 80, 88, 8443)
"""The ports on which Telegram calls a webhook (core.telegram.org/bots/api#setwebhook)."""


def channel_rules(settings: Settings) -> Iterator[CrossCheck]:
    """The rules of each account, and between those of a channel."""
    accounts = settings.channels.accounts()
    for number, account in enumerate(accounts):
        path, section = account.path, account.settings
        if isinstance(section, TelegramSettings):
            yield from _telegram_rules(path, section)
        if isinstance(section, SlackSettings):
            yield from _slack_rules(path, section)
        yield _off_without_needed(account)
        yield from _own_mistakes(account)
        yield _deny_meets_allow(account)
        earlier = [other for other in accounts[:number] if other.channel == account.channel]
        yield from _between(account, earlier)


def _between(account: ChannelAccount, earlier: Sequence[ChannelAccount]) -> Iterator[CrossCheck]:
    """The rules between an account and the earlier ones of its channel."""
    path, section = account.path, account.settings
    names = {other.settings.account: other.path for other in earlier}
    is_given = "account" in section.model_fields_set
    yield CrossCheck(
        path=f"{path}.account",
        reads=tuple(f"{other.path}.account" for other in (account, *earlier)),
        broken=lambda _: section.account in names,
        what=f'is "{section.account}", the name of {names.get(section.account)} too',
        fix="give each account of the channel its own name",
        caused_by="" if is_given else f"{path}.{section.needed()}",
    )
    if isinstance(section, TelegramSettings) and section.webhook_url is not None:
        own = urlsplit(section.webhook_url).path
        others = [one.settings for one in earlier if isinstance(one.settings, TelegramSettings)]
        yield CrossCheck(
            path=f"{path}.webhook_url",
            reads=tuple(f"{other.path}.webhook_url" for other in (account, *earlier)),
            broken=lambda _: own in {urlsplit(other.webhook_url or "").path for other in others},
            what="has the same path as that of another account",
            fix="give each account its own path, as in https://bot.example.org/telegram/support",
        )


def _deny_meets_allow(account: ChannelAccount) -> CrossCheck:
    path, section = account.path, account.settings
    return CrossCheck(
        path=f"{path}.deny",
        reads=(f"{path}.allow", f"{path}.deny"),
        broken=lambda _: not {person_of(entry) for entry in section.allow}.isdisjoint(section.deny),
        what=f"names somebody whom {path}.allow lets in",
        fix="remove the person from one of the two",
    )


def _off_without_needed(account: ChannelAccount) -> CrossCheck:
    """A rule against a section that changes settings without the one that the channel needs to run."""
    path, section = account.path, account.settings
    key = section.needed()
    how = " to the bot's token by reference" if key in section.SECRETS else ""
    return CrossCheck(
        path=f"{path}.{key}",
        reads=(f"{path}.enabled", f"{path}.{key}"),
        broken=lambda _: section.enabled and getattr(section, key) is None and section != type(section)(),
        what=f"is not set, but other settings of [{path}] are: the channel could not start",
        fix=f"set it{how}, or set {path}.enabled to false",
        caused_by=_first_given(account),
    )


def _own_mistakes(account: ChannelAccount) -> Iterator[CrossCheck]:
    """The rules that the channel states itself, checked when its whole table is valid."""
    path, section = account.path, account.settings
    for key, what, fix in section.mistakes():
        yield CrossCheck(
            path=f"{path}.{key}",
            reads=tuple(f"{path}.{name}" for name in type(section).model_fields),
            broken=lambda _: True,
            what=what,
            fix=fix,
            caused_by="" if key in section.model_fields_set else _first_given(account),
        )


def _first_given(account: ChannelAccount) -> str:
    """The path of a setting that its table gives; empty if it gives none."""
    names = sorted(account.settings.model_fields_set)
    return next((f"{account.path}.{name}" for name in names), "")


def _wants_webhook(telegram: TelegramSettings) -> bool:
    return telegram.active and telegram.mode == "webhook"


def _webhook_host_is_foreign(settings: Settings, telegram: TelegramSettings) -> bool:
    if not _wants_webhook(telegram) or telegram.webhook_url is None:
        return False
    address = urlsplit(telegram.webhook_url)
    ours = {urlsplit(origin).netloc for origin in settings.server.public_origins}
    return not is_loopback(address.hostname or "") and address.netloc not in ours


def _webhook_port_is_closed(telegram: TelegramSettings) -> bool:
    if not _wants_webhook(telegram) or telegram.webhook_url is None or telegram.api_base is not None:
        return False
    return (urlsplit(telegram.webhook_url).port or _TELEGRAM_PORTS[0]) not in _TELEGRAM_PORTS


def _telegram_rules(path: str, section: TelegramSettings) -> Iterator[CrossCheck]:
    yield CrossCheck(
        path=f"{path}.webhook_url",
        reads=(f"{path}.token", f"{path}.mode", f"{path}.webhook_url"),
        broken=lambda _: _wants_webhook(section) and section.webhook_url is None,
        what=f'is not set, but {path}.mode is "webhook"',
        fix="set it to the public address of this server, like https://bot.example.org/telegram, "
        f'or set {path}.mode to "polling"',
        caused_by=f"{path}.mode",
    )
    yield CrossCheck(
        path=f"{path}.webhook_secret",
        reads=(f"{path}.token", f"{path}.mode", f"{path}.webhook_secret"),
        broken=lambda _: _wants_webhook(section) and section.webhook_secret is None,
        what=f'is not set, but {path}.mode is "webhook": anybody could send messages as Telegram',
        fix=f'make a secret with "openssl rand -hex 32" and refer to it, or set {path}.mode to "polling"',
        caused_by=f"{path}.mode",
    )
    yield CrossCheck(
        path=f"{path}.webhook_url",
        reads=(f"{path}.webhook_url", f"{path}.mode", "server.public_origins"),
        broken=lambda settings: _webhook_host_is_foreign(settings, section),
        what="names a host that is not in server.public_origins, so the server would refuse Telegram's calls",
        fix="add scheme and host of the address to server.public_origins",
    )
    yield CrossCheck(
        path=f"{path}.webhook_url",
        reads=(f"{path}.webhook_url", f"{path}.mode", f"{path}.api_base"),
        broken=lambda _: _webhook_port_is_closed(section),
        what="names a port that Telegram does not call",
        fix="use one of the ports 443, 80, 88 and 8443",
    )


def _slack_rules(path: str, section: SlackSettings) -> Iterator[CrossCheck]:
    yield CrossCheck(
        path=f"{path}.app_token",
        reads=(f"{path}.bot_token", f"{path}.mode", f"{path}.app_token"),
        broken=lambda _: section.active and section.mode == "socket" and section.app_token is None,
        what=f'is not set, but {path}.mode is "socket"',
        fix="set it to an app-level token (xapp-…) with the scope connections:write, "
        f'or set {path}.mode to "http"',
        caused_by=f"{path}.mode",
    )
    yield CrossCheck(
        path=f"{path}.signing_secret",
        reads=(f"{path}.bot_token", f"{path}.mode", f"{path}.signing_secret"),
        broken=lambda _: section.active and section.mode == "http" and section.signing_secret is None,
        what=f'is not set, but {path}.mode is "http": anybody could send messages as Slack',
        fix=f'set it to the signing secret of the app, by reference, or set {path}.mode to "socket"',
        caused_by=f"{path}.mode",
    )
