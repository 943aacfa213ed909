"""Download a file from a platform's server, with retries and readable errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from adapters.channel import Failure
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable

WAITS_S = (1.0, 3.0, 8.0)
"""Seconds between attempts. Short, because the user waits for an answer."""
_LAST_BEGINS_S = 45.0
"""No attempt starts later than this after the first one: attempts that time out are slow."""
_GONE = frozenset({404, 410})
_PASSING = frozenset({408, 425, 429})
_SERVER_ERROR = 500


class NotNow(Exception):
    """A temporary failure of an attempt. The text is for the person who sent the file; `detail` is
    for the log: the platform's message, without an address or a token."""

    def __init__(self, words: str, *, retry_after_s: float | None = None, detail: str = "") -> None:
        super().__init__(words)
        self.retry_after_s = retry_after_s
        self.detail = detail


async def fetched(attempt: Callable[[], Awaitable[bytes]], clock: Clock) -> bytes:
    """The result of `attempt`, retried after `WAITS_S` while it raises NotNow. Raises MediaUnavailable."""
    latest = clock.monotonic() + _LAST_BEGINS_S
    for wait in (*WAITS_S, None):
        try:
            return await attempt()
        except NotNow as error:
            pause = None if wait is None else max(wait, error.retry_after_s or 0.0)
            if pause is None or clock.monotonic() + pause > latest:
                words = f"{error}. Please send it again later."
                raise MediaUnavailable(words, detail=error.detail) from None
            await clock.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def not_fetched(platform: str, failure: Failure) -> NotNow | MediaUnavailable:
    """The error for the person who sent the file; the failure's message is the detail."""
    if failure.kind in ("transient", "rate_limit"):
        words = f"The file could not be fetched from {platform}"
        return NotNow(words, retry_after_s=failure.retry_after_s, detail=failure.message)
    return MediaUnavailable(f"{platform} does not give the file out.", detail=failure.message)


def refused(platform: str, status: int) -> Exception:
    """The error for a download's HTTP status other than 200: NotNow or MediaUnavailable."""
    if status in _GONE:
        return MediaUnavailable(f"{platform} no longer has the file. Please send it again.")
    if status in _PASSING or status >= _SERVER_ERROR:
        return NotNow(f"{platform} cannot give the file out at the moment (HTTP {status})")
    return MediaUnavailable(f"{platform} does not give the file out (HTTP {status}).")
