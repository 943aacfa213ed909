"""Find the token of a request. No token is kept: each is read by its reference at every request, hashed, and
compared, so that a rotated one works at once and the old one no longer does.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Mapping

from aiohttp import web

from adapters.api.problems import RequestRefused
from adapters.api.settings import Token
from pipeline.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)
_LONGEST = 500


class TokenBook:
    """The tokens of the API."""

    def __init__(self, tokens: Mapping[str, Token]) -> None:
        self._tokens = tuple(tokens.values())

    def holder(self, presented: str) -> Token | None:
        """The program whose token it is; None if it is no one's. Compares every token in constant time."""
        if not presented or len(presented) > _LONGEST:
            return None
        digest, found = _hashed(presented), None
        for token in self._tokens:
            if hmac.compare_digest(digest, _current(token)):
                found = token
        return found


def _current(token: Token) -> bytes:
    """The hash of the token as it is now; one that nothing has, while it cannot be read."""
    try:
        return _hashed(token.secret())
    except ConfigurationError as error:
        _log.error("a token of the API cannot be read", extra={"token": token.name, "reason": str(error)})
        return b""


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def presented_token(request: web.Request) -> str:
    """The token that a request presents: once, as `Authorization: Bearer …`; else empty."""
    given = request.headers.getall("Authorization", [])
    if len(given) != 1:
        return ""
    scheme, _, token = given[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def unknown_token(*, too_many: bool) -> RequestRefused:
    """The refusal of a missing or wrong token. One guess per connection."""
    headers = {"WWW-Authenticate": 'Bearer realm="parlour"'}
    if too_many:
        return RequestRefused(
            429,
            "There were too many wrong tokens from this address. Wait a minute.",
            headers={**headers, "Retry-After": "60"},
            unread=True,
        )
    return RequestRefused(
        401, "Send a token of [api.tokens] as 'Authorization: Bearer …'.", headers=headers, unread=True
    )
