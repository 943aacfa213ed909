"""Classify failed calls to Discord.

Messages are made from kinds and numbers: an error's own text may contain a URL."""

from __future__ import annotations

import aiohttp

from adapters.channel import Failure, FailureKind
from adapters.discord.rest import NotConnected, ServerFailed, TooManyRequests
from adapters.discord.sdk import discord
from adapters.withheld import RequestWithheld

_BY_STATUS: dict[int, tuple[FailureKind, str]] = {
    400: ("invalid", "Discord did not accept the message"),
    401: ("auth", "Discord did not accept the bot's token (channels.discord.token)"),
    403: ("permission", "the bot may not do this here: it lacks a permission, or the person blocked it"),
    404: ("not_found", "the channel or the message is gone"),
    413: ("invalid", "the message is too large for Discord"),
}


def classify(error: Exception) -> Failure:
    """The failure for `error`, raised by a call of `rest`."""
    match error:
        case NotConnected():
            return Failure(kind="transient", message="the bot is not connected to Discord")
        case RequestWithheld():
            return Failure(kind="transient", message=str(error))
        case TooManyRequests():
            return Failure(
                kind="rate_limit",
                message=str(error),
                retry_after_s=error.retry_after_s,
                whole_account=error.whole_account,
            )
        case discord.RateLimited():
            return Failure(kind="rate_limit", message="Discord asks to wait", retry_after_s=error.retry_after)
        case ServerFailed():
            return Failure(kind="transient", message=str(error), maybe_delivered=True)
        case discord.HTTPException():
            return _by_status(error)
        case TimeoutError():
            return Failure(kind="transient", message="Discord did not answer in time", maybe_delivered=True)
        case aiohttp.ClientConnectorError():
            return Failure(kind="transient", message="Discord cannot be reached")
        case aiohttp.ClientError() | OSError():
            return Failure(kind="transient", message="the connection to Discord broke", maybe_delivered=True)
    return Failure(kind="unknown", message=f"unexpected {type(error).__name__}", maybe_delivered=True)


def _by_status(error: discord.HTTPException) -> Failure:
    kind, words = _BY_STATUS.get(error.status, ("unknown", "Discord refused the call"))
    return Failure(kind=kind, message=f"{words} ({error.status}, code {error.code})")
