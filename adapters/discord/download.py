"""Download attachments: the link is requested each time, and only Discord's own file servers are used.

Not here: what the bytes are. They are opaque.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from adapters.discord.failures import classify
from adapters.discord.media import attachment_in, place_of
from adapters.discord.rest import Rest
from adapters.discord.settings import CHANNEL
from adapters.downloads import fetched, not_fetched, refused
from adapters.json_fields import integer
from pipeline.domain.attachments import file_size
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.messages import MediaRef

_FILE_HOSTS = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
_CHUNK = 64 * 1024
_OK = 200
_WHOLE_S = 60.0
_GONE = "Discord no longer has the file. Please send it again."


class DiscordDownloads:
    """Downloads for one bot. `api_base` is another server's address, whose files are also accepted."""

    def __init__(self, rest: Rest, clock: Clock, api_base: str | None) -> None:
        self._rest = rest
        self._clock = clock
        self._own_server = urlsplit(api_base or "").netloc

    async def fetch(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        """The bytes. Raises MediaUnavailable when gone, foreign, unreachable or over `max_bytes`."""
        place = place_of(ref.handle) if ref.channel == CHANNEL else None
        if place is None:
            raise MediaUnavailable("this is not a file of the Discord channel")
        return await fetched(lambda: self._once(*place, max_bytes), self._clock)

    async def _once(self, channel: str, message: str, attachment_id: str, max_bytes: int) -> bytes:
        attachment = await self._find(channel, message, attachment_id)
        if (integer(attachment.get("size")) or 0) > max_bytes:
            raise _too_large(max_bytes)
        url = attachment.get("url")
        if not isinstance(url, str) or not self._is_trusted(url):
            raise MediaUnavailable("Discord gave an address for the file that is not Discord's")
        try:
            async with self._clock.timeout(_WHOLE_S):
                return await _read(url, max_bytes)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # The text of these errors may contain the link, which gives access to the file.
            raise not_fetched("Discord", classify(error)) from None

    async def _find(self, channel: str, message: str, attachment: str) -> Mapping[str, Any]:
        try:
            found = attachment_in(await self._rest.message(channel, message), attachment)
        except Exception as error:  # noqa: BLE001 - classified and reported
            failure = classify(error)
            if failure.kind == "not_found":
                raise MediaUnavailable(_GONE, detail=failure.message) from None
            raise not_fetched("Discord", failure) from None
        if found is None:
            raise MediaUnavailable(_GONE)
        return found

    def _is_trusted(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        if self._own_server and parts.netloc == self._own_server:
            return parts.scheme in ("http", "https")
        # Compare the whole authority: with a user name or a port it is a different one.
        return parts.scheme == "https" and parts.netloc in _FILE_HOSTS


async def _read(url: str, max_bytes: int) -> bytes:
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        if response.status != _OK:
            raise refused("Discord", response.status)
        if (response.content_length or 0) > max_bytes:
            raise _too_large(max_bytes)
        content = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK):
            content += chunk
            if len(content) > max_bytes:
                raise _too_large(max_bytes)
        return bytes(content)


def _too_large(max_bytes: int) -> MediaUnavailable:
    return MediaUnavailable(f"It is larger than {file_size(max_bytes)}. Please send a smaller one.")
