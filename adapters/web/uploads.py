"""Take uploads for messages over HTTP.

Every request has the token of its sender in its headers, which are checked before a body is read. A chat is
found under the sender alone, and an upload can be used by its sender alone. Stored files are served by
`file_links`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator

from aiohttp import web

from adapters.guests import chat_of
from adapters.web.inbound import thread_of
from adapters.web.media import TooLarge
from adapters.web.person_frames import CHAT_ID
from adapters.web.security import foreign_address_response, host_allowed, origin_allowed, security_headers
from adapters.web.shared import Shared
from adapters.web.visitors import visitor_of
from pipeline.domain.errors import StorageError

_log = logging.getLogger(__name__)

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
        chat = await self._chat(request)
        if isinstance(chat, web.Response):
            return chat
        limit, size = self._shared.limits.file_bytes, request.content_length
        if not limit:
            return _answer(403, "This bot takes no files.")
        if size is not None and size > limit:
            return _too_large(limit)
        if self._uploads >= _MOST_AT_ONCE:
            return _answer(503, "Too many files are being uploaded; try again in a moment.")
        self._uploads += 1
        try:
            stored = await self._shared.media.receive(self._chunks(request), chat=chat, max_bytes=limit)
        except TooLarge:
            return _too_large(limit)
        except TimeoutError:
            return _answer(408, "The upload stopped; try again.")
        except StorageError as error:
            _log.warning("an upload could not be stored", extra={"reason": str(error)})
            return _answer(503, "The file could not be stored; try again in a moment.")
        finally:
            self._uploads -= 1
        # The person may have been removed, or the chat deleted, while it arrived.
        again = await self._chat(request)
        if isinstance(again, web.Response):
            await self._shared.media.discard_waiting(chat)
            return again
        handle, received = stored
        return _json({"handle": handle, "size": received})

    async def _chunks(self, request: web.Request) -> AsyncIterator[bytes]:
        while True:
            async with self._shared.clock.timeout(_CHUNK_S):
                chunk = await request.content.readany()
            if not chunk:
                return
            yield chunk

    async def _chat(self, request: web.Request) -> str | web.Response:
        """The gateway's id of the sender's chat that the request names; the answer to a request that may not
        upload files for it."""
        settings = self._shared.settings
        if not host_allowed(request, settings.allowed_hosts()):
            return foreign_address_response()
        if "Origin" in request.headers and not origin_allowed(request, settings.allowed_origins()):
            return foreign_address_response()
        presented = request.headers.get("Authorization", "")
        try:
            visitor = None
            if presented.startswith(_BEARER):
                visitor = await visitor_of(self._shared, presented.removeprefix(_BEARER))
        except StorageError as error:
            _log.warning("the sender of an upload could not be looked up", extra={"reason": str(error)})
            return _answer(503, "The file could not be stored; try again in a moment.")
        if visitor is None:
            self._shared.wrong_tokens.note(request.remote)
            return _answer(401, "The access token is missing or wrong.")
        if not CHAT_ID.fullmatch(request.match_info["chat"]):
            return _answer(404, "There is no such chat.")
        chat, chats = chat_of(visitor, request.match_info["chat"]), self._shared.chats
        if chats is not None and chats.is_deleted(thread_of(chat)):
            return _answer(404, "There is no such chat.")
        return chat


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
