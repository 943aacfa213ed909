"""Classify failed calls to Telegram. Messages are made from kinds, never from an address; a refusal's message
quotes Telegram's description and is for the operator."""

from __future__ import annotations

import httpx
from telegram.error import (
    BadRequest,
    ChatMigrated,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
    TimedOut,
)

from adapters.channel import Failure, FailureKind
from adapters.telegram.api import FloodWait
from adapters.withheld import RequestWithheld
from pipeline.domain.errors import ConfigurationError, InvalidInput

_GONE = ("chat not found", "message to edit not found", "message can't be edited", "message thread not found")
_FORBIDDEN = (
    "not enough rights",
    "have no rights",
    "write_forbidden",
    "administrator rights",
    "topic_closed",
)
_FORMAT = ("can't parse", "entit")
_UNSENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    RequestWithheld,
)
_MOST_WORDS = 4_000
"""Longer than any display: the redactor shortens it later, so that no secret is cut in half."""


def classify(error: Exception) -> Failure:
    """The failure for `error`, raised by a call that sends."""
    match error:
        case FloodWait(seconds=seconds):
            words = f"Telegram asks to wait {seconds:g} s"
            return Failure(kind="rate_limit", message=words, retry_after_s=seconds)
        case InvalidToken():
            return Failure(kind="auth", message="Telegram refuses the token in channels.telegram.token")
        case ConfigurationError():
            return Failure(kind="auth", message=str(error))
        case Forbidden():
            return Failure(kind="permission", message=f"Telegram does not allow it: {words_of(error)}")
        case ChatMigrated():
            return Failure(kind="not_found", message="the group has become a supergroup with another id")
        case EndPointNotFound():
            return Failure(kind="invalid", message="this Bot API server does not know the method")
        case BadRequest():
            return Failure(kind=_refusal(error), message=f"Telegram refuses it: {words_of(error)}")
        case InvalidInput():
            return Failure(kind="invalid", message=str(error))
        case TelegramError() | httpx.HTTPError() | OSError() | RequestWithheld():
            return _unreachable(error)
        case _:
            return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)


def is_not_modified(error: BadRequest) -> bool:
    """Whether Telegram reports that the message already shows this."""
    return "message is not modified" in words_of(error).lower()


def is_refused_format(error: BadRequest) -> bool:
    """Whether Telegram rejects the entities; the text alone may succeed."""
    return any(words in words_of(error).lower() for words in _FORMAT)


def words_of(error: BaseException) -> str:
    """Telegram's own description of a refusal, on one line of at most 4,000 characters."""
    return " ".join(str(error)[: 2 * _MOST_WORDS].split())[:_MOST_WORDS]


def _refusal(error: BadRequest) -> FailureKind:
    words = words_of(error).lower()
    if any(known in words for known in _GONE):
        return "not_found"
    return "permission" if any(known in words for known in _FORBIDDEN) else "invalid"


def _unreachable(error: Exception) -> Failure:
    if isinstance(error.__cause__, ConfigurationError):
        # The token could not be read: nothing was sent, and the message says what to do.
        return Failure(kind="auth", message=str(error.__cause__))
    unsent = isinstance(error.__cause__ or error, _UNSENT)
    if isinstance(error.__cause__ or error, RequestWithheld):
        words = str(error.__cause__ or error)
    elif unsent:
        words = "Telegram cannot be reached"
    elif isinstance(error, TimedOut):
        words = "Telegram did not answer in time"
    elif isinstance(error, NetworkError) and error.__cause__ is None:
        words = "Telegram answered with a server error"
    else:
        words = f"the connection to Telegram broke ({type(error.__cause__ or error).__name__})"
    return Failure(kind="transient", message=words, maybe_delivered=not unsent)
