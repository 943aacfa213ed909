"""Read the body of a request: raw bytes up to a limit and for a limited time, then JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from adapters.api.problems import RequestRefused, invalid
from pipeline.domain.clock import Clock

READ_S = 5.0
_CHUNK = 16_384


class BodyReader:
    """Reads bodies of at most `limit` bytes."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock

    async def raw(self, request: web.Request) -> bytes:
        """The body. Raises RequestRefused for one that is not JSON by its headers, too large or too slow."""
        if request.content_type != "application/json" or "Content-Encoding" in request.headers:
            raise RequestRefused(
                415, "Send the body as 'Content-Type: application/json', not compressed.", unread=True
            )
        if (request.charset or "utf-8").lower() not in ("utf-8", "utf8"):
            raise RequestRefused(415, "Send the body as UTF-8.", unread=True)
        too_large = RequestRefused(413, f"A body has at most {self._limit} bytes.", unread=True)
        if request.content_length is not None and request.content_length > self._limit:
            raise too_large
        body = bytearray()
        try:
            async with self._clock.timeout(READ_S):
                async for chunk in request.content.iter_chunked(_CHUNK):
                    body += chunk
                    if len(body) > self._limit:
                        raise too_large
        except TimeoutError:
            raise RequestRefused(408, f"A body must arrive within {READ_S:g} seconds.", unread=True) from None
        except (web.RequestPayloadError, HttpProcessingError):
            raise RequestRefused(400, "The body could not be read.", unread=True) from None
        return bytes(body)

    async def fields(self, request: web.Request, known: frozenset[str]) -> Mapping[str, Any]:
        """The JSON object in the body, with no other fields than the `known` ones. Raises RequestRefused."""
        found = parsed(await self.raw(request))
        if not isinstance(found, dict):
            raise invalid("body", f"send a JSON object with {_listed(known)}")
        if not found.keys() <= known:
            raise invalid("body", f"it has a field that is not known; known are {_listed(known)}")
        return found


def parsed(body: bytes) -> Any:
    """The JSON value in a body. Raises RequestRefused for other text and for numbers that JSON has not."""
    try:
        return json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "The body is not JSON text in UTF-8.") from None


def text_field(fields: Mapping[str, Any], name: str, *, most: int, required: bool = True) -> str:
    """A text of the fields; empty where it is absent and not `required`. Raises RequestRefused."""
    value = fields.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise invalid(name, "send a text")
    if required and not value.strip():
        raise invalid(name, "it is empty")
    if len(value) > most:
        raise invalid(name, f"it is longer than {most} characters")
    if not storable(value):
        raise invalid(name, "it holds half of a surrogate pair, which is no text")
    return value


def storable(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _no_constant(_name: str) -> None:
    raise ValueError("no JSON")
