"""What each error of a call means to the gateway, and that no words hold an address."""

from __future__ import annotations

import httpx
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    TelegramError,
    TimedOut,
)

from adapters.telegram.api import FloodWait
from adapters.telegram.failures import classify
from pipeline.domain.errors import ConfigurationError, InvalidInput
from tests.support.tables import each

SECRET = "http://host/bot123:SECRET/sendMessage"


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@each(
    "error, kind, maybe",
    [
        (FloodWait(7), "rate_limit", False),
        (Forbidden("bot was blocked by the user"), "permission", False),
        (BadRequest("Chat not found"), "not_found", False),
        (BadRequest("Message to edit not found"), "not_found", False),
        (BadRequest("Message is too long"), "invalid", False),
        (BadRequest("Message thread not found"), "not_found", False),
        (BadRequest("Not enough rights to send text messages to the chat"), "permission", False),
        (ChatMigrated(-100), "not_found", False),
        (EndPointNotFound("x"), "invalid", False),
        (InvalidToken("x"), "auth", False),
        (ConfigurationError("no token"), "auth", False),
        (caused(NetworkError(SECRET), ConfigurationError("the file is readable by all")), "auth", False),
        (InvalidInput("no chat"), "invalid", False),
        (TimedOut(), "transient", True),
        (NetworkError("Bad Gateway"), "transient", True),
        (Conflict("x"), "transient", True),
        (TelegramError("Invalid server response"), "transient", True),
        (caused(NetworkError(SECRET), httpx.ReadError(SECRET)), "transient", True),
        (caused(NetworkError(SECRET), httpx.ConnectError(SECRET)), "transient", False),
        (caused(TimedOut(), httpx.ConnectTimeout(SECRET)), "transient", False),
        (caused(TimedOut(), httpx.PoolTimeout(SECRET)), "transient", False),
        (httpx.ReadTimeout(SECRET), "transient", True),
        (RuntimeError(SECRET), "unknown", True),
    ],
)
def test_each_error_has_its_kind(error: Exception, kind: str, maybe: bool) -> None:
    failure = classify(error)
    assert (failure.kind, failure.maybe_delivered) == (kind, maybe)
    assert failure.message
    assert "SECRET" not in failure.message


def test_a_long_description_is_not_cut_where_a_secret_would_be_halved() -> None:
    key = "gsk_" + "a1B2c3D4e5" * 4
    failure = classify(Forbidden(f"{'x ' * 85}{key} may not"))
    assert f"{key} may not" in failure.message


def test_a_flood_says_how_long_to_wait() -> None:
    assert classify(FloodWait(7)).retry_after_s == 7.0
