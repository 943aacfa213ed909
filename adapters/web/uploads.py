"""Take uploads for messages over HTTP.

Every request has the access token in its headers, which are checked before a body is read. Stored files are
served by `file_links`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator

from aiohttp import web

from adapters.web.media import TooLarge
from adapters.web.security import foreign_address_response, host_allowed, origin_allowed, security_headers
from adapters.web.shared import Shared
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

_CHAT = re.compile(r"c_[0-9a-f]{32}")
_BEARER = "Bearer "
_MOST_AT_ONCE = 8
_CHUNK_S = 30.0
"""The longest wait for the next part of an upload."""


class Uploads:
    """The route for uploads, which reads its body itself, after the sender is checked."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._uploads = 0

    def routes(self) -> list[web.RouteDef]:
        """The route that takes uploads."""
        return [web.post("/files/{chat}", self._take)]

    async def _take(self, request: web.Request) -> web.Response:
        refused = self._refused(request)
        if refused is not None:
            return refused
        limit, size = self._shared.limits.file_bytes, request.content_length
        if not limit:
            return _answer(403, "This bot takes no files.")
        if size is not None and size > limit:
            return _too_large(limit)
        if self._uploads >= _MOST_AT_ONCE:
            return _answer(503, "Too many files are being uploaded; try again in a moment.")
        self._uploads += 1
        try:
            stored = await self._shared.media.receive(self._chunks(request), max_bytes=limit)
        except TooLarge:
            return _too_large(limit)
        except TimeoutError:
            return _answer(408, "The upload stopped; try again.")
        except StorageError as error:
            _log.warning("an upload could not be stored", extra={"reason": str(error)})
            return _answer(503, "The file could not be stored; try again in a moment.")
        finally:
            self._uploads -= 1
        handle, received = stored
        return _json({"handle": handle, "size": received})

    async def _chunks(self, request: web.Request) -> AsyncIterator[bytes]:
        while True:
            async with self._shared.clock.timeout(_CHUNK_S):
                chunk = await request.content.readany()
            if not chunk:
                return
            yield chunk

    def _refused(self, request: web.Request) -> web.Response | None:
        """The answer to a request that may not upload files for this chat; None for one that may."""
        settings = self._shared.settings
        if not host_allowed(request, settings.allowed_hosts()):
            return foreign_address_response()
        if "Origin" in request.headers and not origin_allowed(request, settings.allowed_origins()):
            return foreign_address_response()
        presented = request.headers.get("Authorization", "")
        if not presented.startswith(_BEARER) or not settings.token_check(presented.removeprefix(_BEARER)):
            self._shared.wrong_tokens.note(request.remote)
            return _answer(401, "The access token is missing or wrong.")
        if not _CHAT.fullmatch(request.match_info["chat"]):
            return _answer(404, "There is no such chat.")
        return None


def _too_large(limit: int) -> web.Response:
    return _answer(413, f"The file is larger than {limit // 1_000_000} MB.")


def _answer(status: int, text: str) -> web.Response:
    response = web.Response(status=status, text=f"{text}\n", headers=security_headers())
    if status != 200:
        # The body of a refused upload is not read, so the connection cannot be used again.
        response.force_close()
    return response


def _json(plain: dict[str, object]) -> web.Response:
    headers = security_headers() | {"Content-Type": "application/json; charset=utf-8"}
    return web.Response(body=json.dumps(plain).encode(), headers=headers)
