"""Find the token of a request. The tokens are kept as hashes, and every one of them is compared.

A token's reference is read again after a second, so that a rotated one works at once.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Mapping

from aiohttp import web

from adapters.api.problems import Refused
from adapters.api.settings import Token
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)
_FRESH_S = 1.0
_LONGEST = 500


class TokenBook:
    """The tokens of the API, by their hashes."""

    def __init__(self, tokens: Mapping[str, Token], clock: Clock) -> None:
        self._tokens = tuple(tokens.values())
        self._clock = clock
        self._hashes: tuple[tuple[bytes, Token], ...] = ()
        self._read_at: float | None = None

    def holder(self, presented: str) -> Token | None:
        """The program whose token it is; None if it is no one's. Takes the same time for every token."""
        if not presented or len(presented) > _LONGEST:
            return None
        digest, found = _hashed(presented), None
        for known, token in self._current():
            if hmac.compare_digest(digest, known):
                found = token
        return found

    def _current(self) -> tuple[tuple[bytes, Token], ...]:
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _FRESH_S:
            self._hashes = tuple(pair for one in self._tokens if (pair := self._read(one)) is not None)
            self._read_at = now
        return self._hashes

    def _read(self, token: Token) -> tuple[bytes, Token] | None:
        try:
            return _hashed(token.secret()), token
        except ConfigurationError as error:
            # While its file is being replaced the token is refused.
            _log.error("a token of the API cannot be read", extra={"token": token.name, "reason": str(error)})
            return None


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def presented_token(request: web.Request) -> str:
    """The token that a request presents: once, as `Authorization: Bearer …`; else empty."""
    given = request.headers.getall("Authorization", [])
    if len(given) != 1:
        return ""
    scheme, _, token = given[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def unknown_token(*, too_many: bool) -> Refused:
    """The refusal of a missing or wrong token. One guess per connection."""
    headers = {"WWW-Authenticate": 'Bearer realm="parlour"'}
    if too_many:
        return Refused(
            429,
            "There were too many wrong tokens from this address. Wait a minute.",
            headers={**headers, "Retry-After": "60"},
            unread=True,
        )
    return Refused(
        401, "Send a token of [api.tokens] as 'Authorization: Bearer …'.", headers=headers, unread=True
    )
