"""The last check before a request leaves for a platform: whether this process still sends from the account.

The gateway checks it before each call as well. Between that and the request a library may wait for its own
limits or for a connection, this process may be paused, and another one may have taken the account over:
the request would then overwrite or repeat what that one has shown. A channel's transport therefore calls
`check_before_request` when it is about to write a request.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from pipeline.domain.errors import StorageError


class RequestWithheld(Exception):
    """The request did not leave: another process may send from the account. A transient failure of a call
    that was not delivered."""


def _nothing() -> None:
    """The check of calls that are not the gateway's own deliveries, such as receiving."""


_check: Final[ContextVar[Callable[[], None]]] = ContextVar("check before a request", default=_nothing)


def set_check(check: Callable[[], None]) -> None:
    """Let `check`, which raises StorageError, decide about the requests of this task and of those that it
    starts."""
    _check.set(check)


def check_before_request() -> None:
    """Raise RequestWithheld if the request must not leave now."""
    try:
        _check.get()()
    except StorageError as error:
        raise RequestWithheld(str(error)) from None


async def before_headers(_session: object, _context: object, _params: object) -> None:
    """The same for `aiohttp.TraceConfig.on_request_headers_sent`, which aiohttp calls before it writes the
    headers, on the connection that it has got."""
    check_before_request()
