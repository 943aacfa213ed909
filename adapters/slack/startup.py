"""Identify the bot and check its secrets, with messages for the operator about rejected ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from adapters.channel import Failure
from adapters.json_fields import mapping, text
from adapters.slack.calls import Calls
from adapters.slack.failures import CallFailed
from adapters.slack.fields import ident
from adapters.slack.inbound import Bot
from adapters.slack.settings import SlackOptions
from pipeline.domain.errors import ConfigurationError

_BOT_TOKEN = "channels.slack.bot_token"  # noqa: S105 - the setting's name
_APP_TOKEN = "channels.slack.app_token"  # noqa: S105 - the setting's name
_NAME_CHARS = 80
_NO_APP = (
    'the id of the Slack app is not known ({why}): with channels.slack.mode = "http" it tells this app\'s '
    "requests from other apps'. Add users:read on the page OAuth & Permissions and install the app again."
)
_APP_CODES = frozenset(
    {"invalid_auth", "not_authed", "not_allowed_token_type", "token_revoked", "missing_scope"}
)


def check_secrets(settings: SlackOptions) -> None:
    """Raise ConfigurationError for a secret that is missing or of the wrong kind; it is never repeated."""
    if not settings.bot_token().strip().startswith("xoxb-"):
        raise ConfigurationError(
            f"{_BOT_TOKEN} is not a bot token: take the Bot User OAuth Token (xoxb-…) of the page "
            "OAuth & Permissions."
        )
    if settings.mode == "socket" and not _value(settings.app_token).startswith("xapp-"):
        raise ConfigurationError(
            f"{_APP_TOKEN} is not an app-level token: make one (xapp-…) with the scope connections:write on "
            "the page Basic Information."
        )
    if settings.mode == "http" and not _value(settings.signing_secret):
        raise ConfigurationError(
            "channels.slack.signing_secret is empty: take the Signing Secret of the page Basic Information. "
            "Without it anybody could send messages as Slack."
        )


async def who_am_i(calls: Calls, settings: SlackOptions) -> Bot:
    """The token's bot. Raises ConfigurationError for a rejected token, else CallFailed."""
    try:
        answer = await calls.run("auth.test", lambda client: client.auth_test())
    except CallFailed as refused:
        if refused.failure.kind != "auth":
            raise
        raise ConfigurationError(
            f"Slack refused {_BOT_TOKEN} ({refused.code}): install the app to the workspace and take the Bot "
            "User OAuth Token of the page OAuth & Permissions again."
        ) from None
    bot = Bot(
        user=ident(answer.get("user_id")),
        bot=ident(answer.get("bot_id")),
        team=ident(answer.get("team_id")),
        app=ident(answer.get("app_id")) or _app_of(settings),
        name=text(answer.get("user"), most=_NAME_CHARS),
    )
    if not (bot.user and bot.bot and bot.team):
        raise ConfigurationError(
            f"Slack does not know {_BOT_TOKEN} as a bot's: take the Bot User OAuth Token (xoxb-…)."
        )
    if not bot.app and settings.mode == "http":
        # Without it, requests signed for another app could not be distinguished from this one's.
        return replace(bot, app=await _asked_app(calls, bot.bot))
    return bot


async def _asked_app(calls: Calls, bot: str) -> str:
    """The id of the bot's app. Raises ConfigurationError where Slack does not return it."""
    try:
        answer = await calls.run("bots.info", lambda client: client.bots_info(bot=bot))
    except CallFailed as refused:
        if refused.code != "missing_scope":
            raise
        raise ConfigurationError(_NO_APP.format(why="the scope users:read is missing")) from None
    app = ident(mapping(answer.get("bot")).get("app_id"))
    if not app:
        raise ConfigurationError(_NO_APP.format(why="Slack names none"))
    return app


async def socket_url(calls: Calls, settings: SlackOptions) -> str:
    """A fresh Socket Mode address. Raises ConfigurationError for a rejected app token, else CallFailed."""
    token = _value(settings.app_token)
    try:
        answer = await calls.run(
            "apps.connections.open", lambda client: client.apps_connections_open(app_token=token)
        )
    except CallFailed as refused:
        if refused.code not in _APP_CODES:
            raise
        raise ConfigurationError(
            f"Slack refused {_APP_TOKEN} ({refused.code}): it needs the scope connections:write, and Socket "
            "Mode has to be switched on for the app."
        ) from None
    url = answer.get("url")
    if not isinstance(url, str) or not url.startswith(("wss://", "ws://")):
        raise CallFailed(Failure(kind="transient", message="Slack gave no address for a socket"))
    return url


def _value(secret: Callable[[], str] | None) -> str:
    return secret().strip() if secret is not None else ""


def _app_of(settings: SlackOptions) -> str:
    """The app's id, which is the second part of its token: `xapp-1-A012AB3CD-…`."""
    parts = _value(settings.app_token).split("-")
    return ident(parts[2]) if len(parts) > 3 else ""
