"""Check the format of the platforms' tokens and secrets, to report a wrong one at start.

A correct format is no proof: only the platform knows whether a token works. No text repeats a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from pipeline.domain.frozen import dataclass

_NUMBER = re.compile(r"(?<=\.)[0-9]+\.")
"""Of a further account's table, as in channels.telegram.2.token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """The format of one setting's value, and values that are often confused with it."""

    right: re.Pattern[str]
    what: str
    """The problem of every other value."""
    fix: str
    mistaken: tuple[tuple[re.Pattern[str], str], ...] = ()
    """Patterns of wrong values with their problem; the first match counts."""


def shape_problem(path: str, value: str) -> tuple[str, str] | None:
    """The problem with `value` as the secret of the setting `path`, and the fix; None if it is fine."""
    shape = _PROGRAMS if _API.fullmatch(path) else _SHAPES.get(_NUMBER.sub("", path))
    if shape is None or shape.right.fullmatch(value):
        return None
    if value != value.strip():
        return "starts or ends with a space", "store the value without spaces around it"
    words = (words for pattern, words in shape.mistaken if pattern.fullmatch(value))
    return next(words, shape.what), shape.fix


_SLACK_BOT = (re.compile(r"xoxb-.*"), "is a Slack bot token (xoxb-…)")
_SLACK_APP = (re.compile(r"xapp-.*"), "is a Slack app-level token (xapp-…)")
_SLACK_USER = (re.compile(r"xox[ap]-.*"), "is a token that acts for a person, not the bot's")
_SLACK_ROTATING = (
    re.compile(r"xoxe[.-].*"),
    "belongs to a Slack app with token rotation, whose tokens end after 12 hours",
)
_TELEGRAM = (re.compile(r"[0-9]{3,16}:.{20,}"), "has the form of a Telegram bot's token")
_SLACK_SECRET = (
    re.compile(r"[0-9a-f]{32}"),
    "has the form of a Slack signing secret or client secret",
)

_OWN = _Shape(
    right=re.compile(r".{16,500}"),
    what="is not 16 to 500 characters long, so that it cannot be guessed",
    fix="make one with: openssl rand -hex 24",
)
_PROGRAMS = _Shape(
    right=re.compile(r"[!-~]{24,500}"),
    what="is not 24 to 500 printable ASCII characters without spaces, so that it cannot be guessed",
    fix="make one with: openssl rand -hex 24",
)
_API = re.compile(r"api\.(?:tokens|webhooks)\.[^.]+\.(?:token|secret)")

_SHAPES: Mapping[str, _Shape] = MappingProxyType(
    {
        "channels.web.token": _OWN,
        "server.metrics_token": _OWN,
        "channels.telegram.token": _Shape(
            right=re.compile(r"[0-9]{3,16}:[A-Za-z0-9_-]{30,64}"),
            what="is not a Telegram bot's token, which is a number, a colon and about 35 characters",
            fix="take the token that @BotFather shows for the bot, whole",
            mistaken=(
                (re.compile(r"[0-9]+"), "is a number alone, as if the token had been cut at its colon"),
                (re.compile(r"bot[0-9]+:.*"), 'starts with "bot", which is a part of addresses only'),
                (_SLACK_BOT[0], "is a Slack token"),
            ),
        ),
        "channels.telegram.webhook_secret": _Shape(
            right=re.compile(r"[A-Za-z0-9_-]{32,256}"),
            what="is not 32 to 256 of the characters A-Z, a-z, 0-9, _ and -",
            fix="make one with: openssl rand -hex 32",
            mistaken=(
                _TELEGRAM,
                (re.compile(r"[A-Za-z0-9_-]{1,31}"), "is shorter than 32 characters"),
                (re.compile(r"[A-Za-z0-9_-]{257,}"), "is longer than 256 characters"),
            ),
        ),
        "channels.slack.bot_token": _Shape(
            right=re.compile(r"xoxb-[A-Za-z0-9-]{10,250}"),
            what="is not a Slack bot token, which starts with xoxb-",
            fix="take the Bot User OAuth Token of the app's page OAuth & Permissions",
            mistaken=(_SLACK_APP, _SLACK_USER, _SLACK_ROTATING, _SLACK_SECRET),
        ),
        "channels.slack.app_token": _Shape(
            right=re.compile(r"xapp-[A-Za-z0-9-]{10,250}"),
            what="is not a Slack app-level token, which starts with xapp-",
            fix="make one with the scope connections:write on the app's page Basic Information",
            mistaken=(_SLACK_BOT, _SLACK_USER, _SLACK_ROTATING, _SLACK_SECRET),
        ),
        "channels.slack.signing_secret": _Shape(
            right=re.compile(r"[A-Za-z0-9]{32,64}"),
            what="is not a Slack signing secret, which is 32 letters and digits",
            fix="take the Signing Secret of the app's page Basic Information",
            mistaken=(_SLACK_BOT, _SLACK_APP, _SLACK_USER, _SLACK_ROTATING),
        ),
        "channels.discord.token": _Shape(
            right=re.compile(r"[A-Za-z0-9_-]{6,100}\.[A-Za-z0-9_-]{4,100}\.[A-Za-z0-9_-]{10,100}"),
            what="is not a Discord bot's token, which is three parts with dots between them",
            fix="take the token of the application's page Bot (Reset Token shows it once)",
            mistaken=(
                (re.compile(r"Bot .*"), 'starts with "Bot ", which is a part of requests only'),
                (re.compile(r"mfa\..*"), "is a token that acts for a person, not the bot's"),
                (re.compile(r"[0-9a-f]{64}"), "is the application's public key"),
                (re.compile(r"[0-9]{15,20}"), "is the application's id"),
                (re.compile(r"[A-Za-z0-9_-]{32}"), "has the form of the application's client secret"),
                _TELEGRAM,
            ),
        ),
    }
)
"""By the setting's dotted path. Other secrets may have any format."""
